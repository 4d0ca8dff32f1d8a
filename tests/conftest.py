"""How many examples the property tests try: the same each time, fewer in `make test`, or with

    CONSPECTUS_PROFILE=long make test

many new ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from cpu_times import OPTION, CpuTimes

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("short", deadline=None, derandomize=True, suppress_health_check=SLOW)
settings.register_profile(
    "long", deadline=None, max_examples=4_400, print_blob=True, suppress_health_check=SLOW
)
settings.register_profile("fast", settings.get_profile("short"), max_examples=12)
# Planted defects (`make mutants`) need a failure, and not the smallest example of it.
for beside in ("short", "fast"):
    settings.register_profile(
        f"{beside}, first failure",
        settings.get_profile(beside),
        phases=[Phase.explicit, Phase.generate],
        report_multiple_bugs=False,
    )
settings.load_profile(os.environ.get("CONSPECTUS_PROFILE", "short"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, metavar="FILE", help="write what each test costs in CPU seconds")


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption(OPTION):
        config.pluginmanager.register(CpuTimes(Path(path)), "cpu-times")


@pytest.fixture(scope="module")
def no_pauses() -> Iterator[None]:
    """Ask a summariser that has failed again at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conspectus.compactor.compaction.RETRY_AFTER", (0.001, 0.001))
        yield
