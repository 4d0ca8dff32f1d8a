"""How many examples the property tests try: the same few each time, or with

    CONSPECTUS_PROFILE=long make test

many new ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("short", deadline=None, derandomize=True, suppress_health_check=SLOW)
settings.register_profile("long", deadline=None, max_examples=1_500, suppress_health_check=SLOW)
settings.load_profile(os.environ.get("CONSPECTUS_PROFILE", "short"))
