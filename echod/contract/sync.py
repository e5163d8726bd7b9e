"""The values that `echod sync` prints as JSON. A module of its own, since the commands of git load little."""

from __future__ import annotations

from typing import NamedTuple

from echod.contract.codec import SCHEMA


class RemoteInfo(NamedTuple):
    """The remote of a project's memory. `pending` are the files that differ from the last exchange."""

    url: str
    branch: str
    pending: tuple[str, ...] = ()


class SyncStatusReport(NamedTuple):
    """`echod sync status`. `driver` is what git does with a memory file that two clones changed (docs/sync.md)."""

    project: str
    driver: str
    remote: RemoteInfo | None = None
    schema: int = SCHEMA


class ResolvedFile(NamedTuple):
    """A memory file in conflict: its path below the project, `resolved`, `conflict` or `left`, and why."""

    path: str
    state: str
    detail: str


class ResolveReport(NamedTuple):
    """`echod sync resolve`."""

    project: str
    files: tuple[ResolvedFile, ...] = ()
    schema: int = SCHEMA
