"""Store one inspection per memory file, valid as long as the file has the same version.

The service, `status` and `review` ask the same questions about hundreds of files, nearly all of them unchanged. So one
look at a changed file is kept in one record: the inspection, the number of secrets, and the maintenance that the file
needs. It answers as long as the file has the same version, which costs one `lstat`.

`save_inspections` keeps the inspections and secret counts as JSON in the runtime directory, so that `echod status` need
not read unchanged files when no service runs. The state database would not do: read-only commands write nothing to it,
and they work without it. A cache that is unreadable, or of another version of echod, is ignored and rebuilt.

This module is imported at every start. The code that reads and parses files is in `inspection.inspect`, which takes
ten times as long to load and is imported when a file has changed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple

from echod import __version__
from echod.errors import GARBLED_ERRORS, left_alone_text
from echod.files import FileVersion, file_version, read_regular, write_runtime_file
from echod.lazy import lazy_imports
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.model import Document, Layer
from echod.memory.policy_model import PolicySettings, PruneExtent
from echod.state.entries import EntryStore
from echod.store.layout import Role

with lazy_imports(__name__):
    from echod.inspection import inspect as inspect_module

if TYPE_CHECKING:
    from echod.memory.policy import OverLimit  # takes long to load

_FORMAT = f"{__version__}/3"
"""The content of an inspection depends on the version of echod that made it."""

_MAX_CACHE_BYTES = 8 * 1024 * 1024

_MAX_KEPT_DOCUMENT_BYTES = 256 * 1024
"""The last document is kept for the next question about the same file, unless its file is larger than this."""

_EVIDENCE_SECONDS = 600.0
"""The evidence of all entries of a file that keeps changing is checked this often; that of new entries at once."""

log = get_logger(__name__)


class EntrySummary(NamedTuple):
    """An entry of a memory file. `content_digest` is that of its text without its metadata.

    `suspicious_phrase` is the phrase that reads like an instruction to agents, or None.
    """

    id: str
    title: str
    normalized_title: str
    layer: Layer | None
    content_digest: str
    suspicious_phrase: str | None


class PromotableEntry(NamedTuple):
    """An entry of a memory file that fulfils every rule of `echod promote`, with the category that fits best.

    `sessions` is the number of sessions that must have referenced it; 0 if its confidence is enough. `raises` is true
    if it is not etched yet.
    """

    id: str
    title: str
    category: str
    content_digest: str
    sessions: int
    raises: bool


class FileInspection(NamedTuple):
    """The contents of a file, as far as questions are asked about them.

    Attributes:
        version: version of the inspected file; None if it is missing or was not read.
        lines: number of lines; None if the file cannot be read or parsed.
        entries: number of entries by layer.
        problem: why echod does not touch the file, as a sentence, or None.
        unreadable: why it cannot be parsed, as a sentence, or None.
        protected_lines: lines that no rule ever removes, apart from pinned entries.
        suspicious: entries of a memory file that read like instructions to agents.
        digest: digest of its bytes.
        promotable: entries of a memory file that could be solutions for people.
    """

    version: FileVersion | None
    lines: int | None
    entries: Mapping[str, int] = {}
    problem: str | None = None
    unreadable: str | None = None
    protected_lines: int = 0
    suspicious: tuple[EntrySummary, ...] = ()
    digest: str = ""
    promotable: tuple[PromotableEntry, ...] = ()

    @property
    def modified_at(self) -> float:
        """Modification time of the file (Unix seconds); 0 if it was not read."""
        return 0.0 if self.version is None else self.version[2] / 1e9


class PrunePreview(NamedTuple):
    """The effect that pruning a memory file would have today. `summary` is one line.

    `over_limit` is the reason why the file would still be over its limit, or None.
    """

    summary: str
    extent: PruneExtent
    over_limit: OverLimit | None


class MaintenancePlan(NamedTuple):
    """The maintenance that a memory or knowledge file needs today. `reason` is None if there is nothing to do.

    A memory file has a `prune_preview`, and `recurring`, the ids of observations to be promoted because they recur.
    """

    reason: str | None
    prune_preview: PrunePreview | None = None
    recurring: tuple[str, ...] = ()


class _DatedPlan(NamedTuple):
    """A plan with its inputs other than the file. `plan` is None if the file cannot be parsed.

    `recorded` is true if the file's entries were recorded in the database before it was made.
    """

    day: date
    policy: PolicySettings
    recorded: bool
    plan: MaintenancePlan | None


@dataclass(slots=True)
class _FileRecord:
    """Everything known about one version of a file. A part is None until it is asked for.

    Plans are not saved for the next process. They depend on the database as well, which changes without the file.
    """

    version: FileVersion
    inspection: FileInspection | None = None
    secrets: int | None = None
    plan: _DatedPlan | None = None


class InspectionCache:
    """Inspections by file. One per process, used by one thread."""

    def __init__(self) -> None:
        self._records: dict[str, _FileRecord] = {}
        self._saved: dict[str, Any] = {}
        self._used: set[str] = set()
        self._evidence_checked_at: dict[str, float] = {}
        self._last_read: tuple[str, FileVersion, FileInspection, Document | None] | None = None
        self.dirty = False

    @classmethod
    def from_json(cls, text: str) -> InspectionCache:
        """Create a cache from the output of `to_json`, or an empty one if it is not of this version."""
        cache = cls()
        try:
            data = json.loads(text)
            if data["format"] == _FORMAT:
                cache._saved = dict(data["files"])
        except GARBLED_ERRORS:
            return cls()
        return cache

    def to_json(self) -> str:
        """Return the records of the files that this process asked about. The cache is not dirty afterwards."""
        self.dirty = False
        files = {
            file: (record.version, None if record.inspection is None else record.inspection[1:], record.secrets)
            for file, record in self._records.items()
            if file in self._used
        }
        return json.dumps({"format": _FORMAT, "files": files}, separators=(",", ":"))

    def inspect(self, file: Path) -> FileInspection:
        """Return the inspection of a memory, knowledge or findings file; 0 lines if it is missing."""
        name = os.fspath(file)
        self._used.add(name)
        try:
            status = os.lstat(name)
        except FileNotFoundError:
            return FileInspection(None, 0)
        except OSError as error:
            return _problem(f"{file.name} cannot be read: {error.strerror}.")
        if not S_ISREG(status.st_mode):
            return _problem(f"{file.name} is not a plain file; echod leaves it alone.")
        if status.st_size > MAX_FILE_BYTES:
            return _problem(f"{file.name} has {status.st_size:,} bytes, more than echod reads.")
        record = self._record(name, file_version(status))
        if record.inspection is None:
            try:
                return self._read(file, record)[0]
            except OSError as error:  # perhaps for a moment only, so this is not kept
                return _problem(f"{file.name} cannot be read: {error.strerror}.")
            except MemoryError as error:
                return _problem(left_alone_text(file.name, error))
        return record.inspection

    def plan(
        self,
        role: Role,
        file: Path,
        version: FileVersion,
        entries: EntryStore | None,
        policy: PolicySettings,
        today: date,
        *,
        record_entries: bool = False,
    ) -> MaintenancePlan | None:
        """Return the maintenance that a role's memory or knowledge file needs; None if it cannot be parsed.

        `version` is the file's present version. With `record_entries`, the entries of a memory file that was not
        recorded since it changed are recorded as well, once a day.

        Raises:
            OSError: the file cannot be read.
        """
        name = os.fspath(file)
        self._used.add(name)
        record = self._record(name, version)
        dated = record.plan
        if dated is None or (dated.day, dated.policy) != (today, policy) or (record_entries and not dated.recorded):
            _, document = self._read(file, record)
            plan = None
            if document is not None:
                recorded = inspect_module.Recorded.NOTHING
                if record_entries:
                    is_due = self._is_evidence_due(name, time.monotonic())
                    recorded = inspect_module.Recorded.ALL_EVIDENCE if is_due else inspect_module.Recorded.NEW_EVIDENCE
                plan = inspect_module.plan_maintenance(role, file, document, entries, policy, today, recorded=recorded)
            dated = record.plan = _DatedPlan(today, policy, record_entries, plan)
        return dated.plan

    def _is_evidence_due(self, name: str, monotonic: float) -> bool:
        """Return whether all evidence of a file is to be checked, and note the time if it is."""
        checked_at = self._evidence_checked_at.get(name)
        if checked_at is not None and monotonic - checked_at < _EVIDENCE_SECONDS:
            return False
        self._evidence_checked_at[name] = monotonic
        return True

    def secret_count(self, file: Path, version: FileVersion | None) -> int | None:
        """Return the number of secrets in this version of a file; None if it was not scanned."""
        name = os.fspath(file)
        self._used.add(name)
        return None if version is None else self._record(name, version).secrets

    def set_secret_count(self, file: Path, version: FileVersion | None, count: int) -> None:
        """Store the number of secrets in this version of a file."""
        if version is not None:
            self._record(os.fspath(file), version).secrets = count
            self.dirty = True

    def forget(self, file: Path) -> None:
        """Remove the record of a file that was deleted."""
        name = os.fspath(file)
        self._used.discard(name)
        self._saved.pop(name, None)
        self._records.pop(name, None)

    def _record(self, name: str, version: FileVersion) -> _FileRecord:
        """Return the record of a file, a new one if the file has another version."""
        record = self._records.get(name)
        if record is None and name in self._saved:
            record = _decode(self._saved.pop(name))
        if record is None or record.version != version:
            record = _FileRecord(version)
        self._records[name] = record
        return record

    def _read(self, file: Path, record: _FileRecord) -> tuple[FileInspection, Document | None]:
        """Read, parse and inspect a file. The document is None if it cannot be parsed.

        Raises:
            OSError: the file cannot be read.
        """
        name = os.fspath(file)
        if self._last_read is not None and self._last_read[:2] == (name, record.version):
            record.inspection, document = self._last_read[2:]
            return record.inspection, document

        data = read_regular(file, MAX_FILE_BYTES)
        inspection, document = inspect_module.inspect_file(file, record.version, data)
        if record.inspection is None:
            record.inspection = inspection
            self.dirty = True
        keep = len(data) <= _MAX_KEPT_DOCUMENT_BYTES
        self._last_read = (name, record.version, inspection, document) if keep else None
        return inspection, document


def load_inspections(file: Path) -> InspectionCache:
    """Load the cache that an earlier process saved; an empty one if it is missing or of another version."""
    try:
        return InspectionCache.from_json(read_regular(file, _MAX_CACHE_BYTES).decode())
    except (OSError, UnicodeDecodeError):
        return InspectionCache()


def save_inspections(inspections: InspectionCache, file: Path) -> None:
    """Save a changed cache for the next process if the runtime directory exists. Failing to do so is harmless."""
    if not inspections.dirty or not file.parent.is_dir():
        return
    try:
        write_runtime_file(file, inspections.to_json())
    except OSError as error:
        log.info("inspections_not_saved", reason=error.strerror)


def _problem(text: str) -> FileInspection:
    return FileInspection(None, None, problem=text)


def _decode(saved: Any) -> _FileRecord | None:
    """Return a saved record; None if it does not have the shape of one."""
    try:
        (inode, size, mtime, ctime), content, secrets = saved
        version = (inode, size, mtime, ctime)
        _require(secrets is None or _is_count(secrets))
        if content is None:
            return _FileRecord(version, None, secrets)
        lines, entries, problem, unreadable, protected_lines, suspicious, digest, promotable = content
        summaries = tuple(
            EntrySummary(identity, title, normalized, None if layer is None else Layer(layer), content_digest, phrase)
            for identity, title, normalized, layer, content_digest, phrase in suspicious
        )
        _require(lines is None or _is_count(lines), _is_count(protected_lines), isinstance(digest, str))
        _require(isinstance(entries, dict), *map(_is_count, entries.values()))
        texts = [value for summary in summaries for value in (*summary[:3], summary.content_digest)]
        texts += [
            text for text in (problem, unreadable, *(one.suspicious_phrase for one in summaries)) if text is not None
        ]
        _require(*(isinstance(text, str) for text in texts))
        proposals = tuple(PromotableEntry(*proposal) for proposal in promotable)
        _require(*(isinstance(text, str) for proposal in proposals for text in proposal[:-1]))
        _require(*(_is_count(proposal.sessions) for proposal in proposals))
        inspection = FileInspection(
            version, lines, entries, problem, unreadable, protected_lines, summaries, digest, proposals
        )
        return _FileRecord(version, inspection, secrets)
    except GARBLED_ERRORS:
        return None


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _require(*conditions: bool) -> None:
    if not all(conditions):
        raise ValueError("another program wrote it, or it is damaged")
