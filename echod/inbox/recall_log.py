"""Read which entries hooks showed to agents. `echod.hooks.offers` is the writing side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from echod.errors import GARBLED_ERRORS
from echod.files import read_regular
from echod.hooks.offers import DIRECTORY, MAX_FILE_BYTES

_TEXTS = ("id", "title", "store", "project", "event", "reason")


class Offer(NamedTuple):
    """An entry that was shown: when (Unix seconds), in which project and session, at which event, and why."""

    at: float
    id: str
    title: str
    store: str
    project: str
    session: str
    event: str
    reason: str


def list_offers(state: Path) -> tuple[Offer, ...]:
    """List the entries that were shown, newest first. Files and lines that cannot be read are passed over.

    Raises:
        OSError: the directory cannot be listed. Unreadable is not empty.
    """
    try:
        files = sorted((state / DIRECTORY).iterdir())
    except FileNotFoundError:
        return ()
    found = [offer for file in files for offer in _read(file)]
    return tuple(sorted(found, key=lambda offer: offer.at, reverse=True))


def _read(file: Path) -> Iterator[Offer]:
    try:
        data = read_regular(file, 2 * MAX_FILE_BYTES, follow_symlinks=False)
    except OSError:
        return  # removed just now, or of another user
    for line in data.splitlines():
        try:
            value = json.loads(line)
            identity, title, store, project, event, reason = (str(value[name]) for name in _TEXTS)
            yield Offer(float(value["at"]), identity, title, store, project, file.name, event, reason)
        except GARBLED_ERRORS:
            continue
