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


_QUICK = frozenset({"test_errors.py", "test_status.py", "test_undo.py"})
"""What `make test` runs of this folder. Real services take long, so the others are for `make test-all`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in _QUICK:
            item.add_marker(pytest.mark.slow)
