"""What a memory file holds that a person may be asked about; files that have not changed are not read again.

Of each file little is remembered: hundreds of them, read and taken apart, would be most of the service's memory. What
is seldom asked for is read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.files import FileVersion, VersionedCache, regular_file_version
from echod.inspection.counts import FileStatsCache, read_document
from echod.memory.model import MAX_FILE_BYTES, Layer
from echod.store.layout import Role

if TYPE_CHECKING:
    from echod.memory.model import Document
    from echod.memory.policy import OverLimit, PolicySettings
    from echod.state.entries import EntryStore


class EntrySummary(NamedTuple):
    """An entry of a memory file.

    Attributes:
        content_digest: digest of what it says, apart from its metadata.
        suspicious_phrase: what makes it read like an instruction to agents; None if nothing does.
    """

    id: str
    title: str
    normalized_title: str
    layer: Layer | None
    content_digest: str
    suspicious_phrase: str | None


class MemorySummary(NamedTuple):
    """A memory file.

    Attributes:
        modified_at: when it was written (Unix seconds).
        lines: its lines.
        protected_lines: those that no rule ever takes out, pinned entries aside.
        suspicious: its entries that read like instructions to agents.
    """

    modified_at: float = 0.0
    lines: int = 0
    protected_lines: int = 0
    suspicious: tuple[EntrySummary, ...] = ()


class PrunePreview(NamedTuple):
    """What pruning would do to a file today.

    Attributes:
        summary: the plan in a line.
        lines_before: lines of the file now.
        lines_after: lines of the file then.
        over_limit: why it is still too long then; None if it is not.
    """

    summary: str
    lines_before: int
    lines_after: int
    over_limit: OverLimit | None


class MemoryInspector:
    """Remembers what it saw in a store; one for each."""

    def __init__(self, stats_cache: FileStatsCache) -> None:
        self._stats_cache = stats_cache
        self._suspicious: VersionedCache[tuple[EntrySummary, ...]] = VersionedCache()
        self._prune_previews: VersionedCache[PrunePreview | None] = VersionedCache()

    def evict_unused(self) -> None:
        """Forget what nobody asked for since the last time."""
        for remembered in (self._suspicious, self._prune_previews):
            remembered.evict_unused()

    def inspect(self, role: Role) -> MemorySummary:
        """A role's memory file; nothing where it cannot be read or understood, which is told elsewhere."""
        version, count = self._stats_cache.get_with_version(role.memory)
        if version is None or count.lines is None:
            return MemorySummary()
        suspicious: tuple[EntrySummary, ...] = ()
        if count.suspicious:
            with suppress(OSError):
                suspicious = self._suspicious.get_or_compute(role.memory, version, lambda: _suspicious_entries(role))
        return MemorySummary(version[2] / 1e9, count.lines, count.protected_lines, suspicious)

    def preview_prune(
        self, role: Role, entries: EntryStore | None, policy: PolicySettings, today: date
    ) -> PrunePreview | None:
        """What pruning would do to a role's memory file; None where it cannot be read or understood."""
        version = readable_file_version(role.memory)

        def make_preview() -> PrunePreview | None:
            # These take long to load, and most files are short.
            from echod.inspection.entry_facts import get_facts  # noqa: PLC0415
            from echod.memory.policy import Facts, plan_prune  # noqa: PLC0415

            document = read_document(role.memory)
            if document is None:
                return None
            facts = Facts() if entries is None else get_facts(role, entries, policy, today, document)
            plan = plan_prune(role.name, document, facts, policy, today)
            return PrunePreview(plan.summary, plan.lines_before, plan.lines_after, plan.over_limit)

        try:
            return (
                None
                if version is None
                else self._prune_previews.get_or_compute(role.memory, (version, today, policy), make_preview)
            )
        except OSError:
            return None


def summarize_entries(role: Role, document: Document) -> Mapping[str, EntrySummary]:
    """The entries of a role's memory file by id."""
    return {entry.id: entry for entry in _summaries(role, document)}


def readable_file_version(file: Path) -> FileVersion | None:
    """The stamp of a plain file of a size that is read; None for anything else, and where that cannot be seen."""
    try:
        return regular_file_version(file, MAX_FILE_BYTES)
    except OSError:
        return None


def _suspicious_entries(role: Role) -> tuple[EntrySummary, ...]:
    document = read_document(role.memory)
    return (
        ()
        if document is None
        else tuple(entry for entry in _summaries(role, document) if entry.suspicious_phrase is not None)
    )


def _summaries(role: Role, document: Document) -> Iterator[EntrySummary]:
    # These take long to load, and it is rare that an entry is looked at.
    from echod.memory.identity import entry_ids, normalize_title  # noqa: PLC0415
    from echod.memory.prompt_injection import find_injection  # noqa: PLC0415
    from echod.memory.similarity import bare_title, learning_of  # noqa: PLC0415

    for identity, block in zip(entry_ids(role.name, document), document.blocks, strict=True):
        if identity is not None and block.entry is not None:
            yield EntrySummary(
                identity,
                block.entry.title,
                normalize_title(bare_title(learning_of(block, block.entry).title)),
                block.entry.layer,
                hashlib.sha256(block.text[block.entry.body.start : block.entry.body.end].encode()).hexdigest(),
                find_injection(block.text),
            )
