"""How many examples and cases are tried: the same each time, fewer in `make test`, or with

    CONSPECTUS_PROFILE=long make test

many new ones.
"""

import functools
import gc
import importlib
import os
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from conspectus.bridge import call_either_way
from scripts import folder_of_scripts

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("short", deadline=None, derandomize=True, suppress_health_check=SLOW)
settings.register_profile(
    "long", deadline=None, max_examples=4_400, print_blob=True, suppress_health_check=SLOW
)
settings.register_profile("fast", settings.get_profile("short"), max_examples=12)
# Planted defects (`make mutants`) need a failure, and not the smallest example of it.
for profile in ("short", "fast"):
    settings.register_profile(
        f"{profile}, first failure",
        settings.get_profile(profile),
        phases=[Phase.explicit, Phase.generate],
        report_multiple_bugs=False,
    )
settings.load_profile(os.environ.get("CONSPECTUS_PROFILE", "short"))
# LiteLLM would ask a network for prices when it is imported.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what `make test` leaves out of the cases of a test that is sampled."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for parametrized in cases.values():
        mark = parametrized[0].get_closest_marker("sampled")
        (count,) = mark.args
        for index, item in enumerate(parametrized):
            if index * count // len(parametrized) == (index - 1) * count // len(parametrized):
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Keep the collector from going through all modules and tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds that would have been waited between tries."""
    seconds_waited: list[float] = []
    monkeypatch.setattr("conspectus.engine.summary.RETRY_AFTER", (0.5, 2.0))
    monkeypatch.setattr(
        "conspectus.engine.summary.pause",
        lambda seconds: call_either_way(lambda: seconds_waited.append(seconds)),
    )
    return seconds_waited


@pytest.fixture
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's own archive below the folder of the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def heard() -> Iterator[Any]:
    """What is told of notes prepared beside the caller."""
    from background_support import HeardEvents
    from observe_support import events_heard as hearing

    with hearing("preparation") as events:
        yield HeardEvents(events)


@pytest.fixture(scope="session", autouse=True)
def one_list_of_authorities() -> Iterator[None]:
    """Read the certificate authorities once, and not for each HTTP client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssl.create_default_context", functools.cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_pauses() -> Iterator[None]:
    """Ask a summariser that has failed again at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conspectus.engine.summary.RETRY_AFTER", (0.001, 0.001))
        yield


@pytest.fixture(scope="module")
def script() -> Iterator[Callable[[str], ModuleType]]:
    """Import a script of the benchmarks, a folder that is no package, by its name."""
    with folder_of_scripts():
        yield importlib.import_module


@pytest.fixture
def fitter(tmp_path: Path) -> Iterator[Any]:
    """What fits requests of SDK clients to a small window."""
    from conspectus_sdk import Fitter
    from sdk_support import WINDOW

    with Fitter(archive=str(tmp_path / "a.db"), window=WINDOW) as sdk_fitter:
        yield sdk_fitter


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty archive of its own: a file, or a schema."""
    from postgres_support import postgres_schema

    if request.param == "sqlite":
        yield str(tmp_path / "a.db")
        return
    with postgres_schema() as address:
        yield address
