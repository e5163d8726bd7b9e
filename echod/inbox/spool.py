"""Read what hooks wrote: events, which are removed, and the entries that were shown to agents.

Several processes may read the spool at the same time. An event belongs to the process that removes its file.
"""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from echod.contract.status import RecallInfo
from echod.errors import GARBLED_ERRORS
from echod.files import read_regular
from echod.hooks import spool
from echod.hooks.offers import DIRECTORY, MAX_FILE_BYTES
from echod.lazy import lazy_pattern
from echod.log import get_logger

log = get_logger(__name__)

_EVENT_FILE_NAME = lazy_pattern(r"(?P<ns>\d{20})-(?P<size>[0-9a-f]{7})-\d+\.(?P<event>[a-z-]+)\.json")
_ABANDONED_SECONDS = 3600.0
_NANOSECONDS = 1e9

DROP_REASONS = {
    spool.FULL: "the spool was full; the service did not run for long",
    spool.TOO_LARGE: "the event was larger than 1 MiB",
    spool.EMPTY: "the event was empty",
    spool.NOT_WRITTEN: "the spool could not be written",
    spool.UNKNOWN: "a hook was called for an unknown event",
}


class SpooledEvent(NamedTuple):
    """An event in the spool: its file's name, its kind, and when it was written (Unix seconds)."""

    name: str
    kind: str
    spooled_at: float


class Spool:
    """The events in a directory, which may be missing."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def list_events(self) -> tuple[SpooledEvent, ...]:
        """List the events, the oldest first.

        Raises:
            OSError: the directory cannot be listed. Unreadable is not empty.
        """
        try:
            names = sorted(path.name for path in self._directory.iterdir())
        except FileNotFoundError:
            return ()
        matches = (match for name in names if (match := _EVENT_FILE_NAME.fullmatch(name)))
        return tuple(SpooledEvent(m.string, m["event"], int(m["ns"]) / _NANOSECONDS) for m in matches)

    def read(self, spooled: SpooledEvent) -> Mapping[str, object] | None:
        """Return the event's fields; None if it is not a JSON object, for example after a power cut.

        Raises:
            OSError: the file cannot be read; FileNotFoundError if another process took it.
        """
        try:
            event = json.loads(read_regular(self._directory / spooled.name, spool.MAX_EVENT_BYTES))
        except GARBLED_ERRORS:
            return None
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EFBIG):  # not written by a hook
                return None
            raise
        return event if isinstance(event, dict) else None

    def remove(self, names: Iterable[str]) -> frozenset[str]:
        """Remove events, and return those that this call removed, not those that another process took."""
        removed = set()
        for name in names:
            try:
                (self._directory / name).unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                log.warning("event_not_removed", name=name, error=error.strerror)
                continue
            removed.add(name)
        return frozenset(removed)

    def remove_unfinished(self, now: float) -> None:
        """Remove the unfinished files of killed hooks that are an hour old at `now`."""
        try:
            unfinished = [path for path in self._directory.iterdir() if path.name.endswith(spool.PARTIAL_SUFFIX)]
            for path in unfinished:
                if now - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("spool_cleanup_failed", error=error.strerror)

    def count_dropped(self) -> Mapping[str, int]:
        """Return the total number of events that hooks could not spool, by reason."""
        try:
            letters = Counter(read_regular(self._directory / spool.DROPPED_FILE, 2 * spool.MAX_DROPPED_COUNT).decode())
        except (OSError, ValueError):
            return {}
        return {reason: letters[letter] for letter, reason in DROP_REASONS.items() if letters[letter]}


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


def count_offers(state: Path) -> RecallInfo:
    """Count the entries that were shown; none if they cannot be listed."""
    try:
        offers = list_offers(state)
    except OSError:
        return RecallInfo()
    last = offers[0].at if offers else None
    return RecallInfo(len(offers), len({o.id for o in offers}), len({o.session for o in offers}), last)


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
