"""`echod demo` plays its whole story with the real service, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_demo_ends_with_an_undo_to_the_byte_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "echod", "demo"],
        env={**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "The file is as it was, byte for byte" in done.stdout
    assert "tr0ub4dor" not in done.stdout
    assert "Deploy with ./ship" in done.stdout.partition("search 'how do we deploy'")[2]
    assert list(tmp_path.glob("echod-demo-*")) == []
