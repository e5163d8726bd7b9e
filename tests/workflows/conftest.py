from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.workflows.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """An empty project without any workflow."""
    project = tmp_path / "project"
    home = tmp_path / "claude-home"
    project.mkdir()
    home.mkdir()
    # Half a second ahead: what the test is about to write is not in its future.
    return Scene(project=project, now=time.time() + 0.5, claude_home=home)


@pytest.fixture
def ordinary_user() -> None:
    """Permissions mean nothing to root."""
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
