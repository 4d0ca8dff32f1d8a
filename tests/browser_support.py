"""A headless Chromium for tests of pages, with what it asked for and complained about."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def browser_paths() -> tuple[str, str] | None:
    """The browser and its driver, if both are on this machine."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def browser(profile: Path, *, dark: bool = False, width: int = 1200) -> Iterator[Any]:
    """A browser with an empty profile; skips where there is none.

    Args:
        profile: an empty folder.
        dark: whether pages are told that dark is preferred.
        width: of the view, in pixels; below 600 it is a telephone.
    """
    paths = browser_paths()
    if paths is None:
        pytest.skip("NO BROWSER IS INSTALLED; on Debian: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    for option in (*OPTIONS, f"--user-data-dir={profile}", f"--window-size={width},900"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(paths[1]))
    try:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        if width < 600:
            view = {"width": width, "height": 900, "deviceScaleFactor": 2, "mobile": True}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", view)
        driver.get("about:blank")
        complaints(driver)  # what the browser's own start page asked for
        yield driver
    finally:
        driver.quit()


def complaints(driver: Any) -> list[str]:
    """What the console said and what was asked for beyond the page itself, since the last time."""
    found = [entry["message"] for entry in driver.get_log("browser")]
    for entry in driver.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            address = event["params"]["request"]["url"]
            if address.partition("#")[0] != driver.current_url.partition("#")[0]:
                found.append(f"asked for {address:.200}")
        elif event["method"] == "Network.loadingFailed":
            found.append(f"failed: {event['params']}")
    return found


if __name__ == "__main__":  # for scripts: whether there is a browser
    sys.exit(0 if browser_paths() else 1)
