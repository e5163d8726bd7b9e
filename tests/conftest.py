"""What holds for every test: hypothesis has no clock, and where a run decides (CI) it has no dice either.

The search with fresh dice is `make fuzz` and every run at a desk. A test that takes long has more time before it counts
as hanging, because a busy machine makes it take several times as long.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("desk"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

_SLOW_TEST_SECONDS = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_SLOW_TEST_SECONDS))


@pytest.fixture(autouse=True)
def silence_log(request: pytest.FixtureRequest) -> Iterator[None]:
    """Silence the log of the durability proofs, so that their tables are readable."""
    if not request.node.get_closest_marker("torture"):
        yield
        return
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)
