from __future__ import annotations

from pathlib import Path

import pytest

from echod.service.base import ServiceConfig
from tests.service.fakes import FakeSupervisor


@pytest.fixture
def supervisor(tmp_path: Path) -> FakeSupervisor:
    return FakeSupervisor(tmp_path)


@pytest.fixture
def service_config() -> ServiceConfig:
    return ServiceConfig(("/opt/echod/bin/echod", "run"), (("CLAUDE_CONFIG_DIR", "/home/me/claude"),))
