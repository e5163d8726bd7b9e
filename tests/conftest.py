"""What holds for every test: hypothesis has no clock, and where a run decides (CI) it has no dice either.

The search with fresh dice is `make fuzz` and every run at a desk.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("desk"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
