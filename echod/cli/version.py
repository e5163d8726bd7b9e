"""Describe the version of the running program. A module of its own because only `--version` reads these files."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import echod
from echod.store.git import read_commit

_SHORT_COMMIT_DIGITS = 10


def version_text() -> str:
    """Return the version, and the commit of the source if it is known: `0.1.0 (commit 4f2c9a1b0d)`."""
    commit = read_commit(Path(echod.__file__).parents[1]) or _installed_commit()
    return echod.__version__ if commit is None else f"{echod.__version__} (commit {commit[:_SHORT_COMMIT_DIGITS]})"


def _installed_commit() -> str | None:
    """Return the commit that an installer fetched, as recorded by PEP 610 in `direct_url.json`."""
    try:
        record = json.loads(distribution("echod-memory").read_text("direct_url.json") or "{}")
        commit = record.get("vcs_info", {}).get("commit_id")
    except (PackageNotFoundError, ValueError, AttributeError, OSError):
        return None
    return commit if isinstance(commit, str) else None
