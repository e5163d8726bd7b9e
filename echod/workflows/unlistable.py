"""A directory of markers that cannot be listed: who knows what is in it, so it counts, for a bounded time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from echod.workflows import files as reading
from echod.workflows.model import Claim, Marker
from echod.workflows.verdict import Kind

if TYPE_CHECKING:
    from pathlib import Path


def unlistable(project: Path, directory: Path, written: float | None) -> Marker:
    """The sign that `directory`, last changed at `written` (Unix seconds), cannot be listed."""
    path = reading.relative(directory, project)
    return Marker(
        kind=Kind.UNSEEN,
        path=path,
        name=directory.name,
        says=f"the directory {path} cannot be read; make it readable for echod",
        claim=Claim.UNREADABLE,
        written=written,
        touched=written,
    )
