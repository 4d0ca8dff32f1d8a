"""A headless Chromium for tests of pages."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def browser_paths() -> tuple[str, str] | None:
    """The browser and its driver, if both are on this machine."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """A browser with an empty profile; skips where there is none."""
    paths = browser_paths()
    if paths is None:
        pytest.skip("NO BROWSER IS INSTALLED; on Debian: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    for option in (*OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(paths[1]))
    try:
        yield driver
    finally:
        driver.quit()


if __name__ == "__main__":  # for scripts: whether there is a browser
    sys.exit(0 if browser_paths() else 1)
