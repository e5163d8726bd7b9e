"""The whole product as a user runs it: real commands, a real service, real files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)
