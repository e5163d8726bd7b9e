"""What was counted in memory and knowledge files. Kept as long as a file is the same, and for the next process too.

Looking at a hundred projects must cost little, so a file is read and taken apart only when it is another than before.

What is counted in a memory or knowledge file.

Counting what is in a memory or knowledge file, once it has been read.

What was counted in files, left in the runtime directory for the next process that looks at them.

Reading a memory or knowledge file for whoever only looks; whoever changes it reads it with more care.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from echod import __version__
from echod.files import FileVersion, file_version, read_regular, write_runtime_file
from echod.log import get_logger
from echod.memory.document import count_lines, parse
from echod.memory.model import MAX_FILE_BYTES, Document, Unreadable
from echod.memory.policy.scoring import count_document_lines, leaves_block_open
from echod.memory.prompt_injection import find_injection, might_contain_injection

if TYPE_CHECKING:
    from echod.memory.model import Document


@dataclass(frozen=True, slots=True)
class FileStats:
    """What is in a file.

    Attributes:
        lines: its lines; None where it cannot be read or is left alone.
        entries: its entries by layer.
        problem: why it is left alone, in a sentence.
        protected_lines: lines that no rule ever takes out, pinned entries aside.
        suspicious: whether one of its entries reads like an instruction to agents.
    """

    lines: int | None
    entries: Mapping[str, int] = field(default_factory=dict)
    problem: str | None = None
    protected_lines: int = 0
    suspicious: bool = False


def compute_file_stats(name: str, data: bytes) -> FileStats:
    """What is in the file of this name."""
    document = parse(data)
    if isinstance(document, Unreadable):
        return FileStats(None, problem=f"{name} is left alone: {document.reason}")
    layers = Counter(
        block.entry.layer.value if block.entry.layer is not None else "unknown"
        for block in document.blocks
        if block.entry is not None
    )
    speaks = might_contain_injection(data.decode()) and any(
        block.entry is not None and find_injection(block.text) for block in document.blocks
    )
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    return FileStats(lines, dict(layers), None, _protected_lines(document), speaks)


def _protected_lines(document: Document) -> int:
    lines, entries = count_lines(document.preamble), 0
    above_is_open = False
    for block in document.blocks:
        entries += block.entry is not None
        if block.protected or above_is_open:
            lines += count_lines(block.text)
        above_is_open = leaves_block_open(block.text)
    # The last entry of a file stays whatever it is.
    return count_document_lines(document) if entries <= 1 else lines


_CACHE_FORMAT = f"{__version__}/1"
"""Who counts, and what; what another version left is counted anew."""


class FileStatsCache:
    """Counts by file; one for a process, owned by one thread."""

    def __init__(self) -> None:
        self._stats: dict[str, tuple[FileVersion, FileStats]] = {}
        self._used: set[str] = set()
        self.dirty = False

    @classmethod
    def from_json(cls, text: str) -> FileStatsCache:
        """With what `to_json` of an earlier process said; with nothing where that cannot be understood."""
        cache = cls()
        try:
            data = json.loads(text)
            if data["form"] == _CACHE_FORMAT:
                cache._stats = {
                    file: ((inode, size, mtime, ctime), FileStats(*count))
                    for file, ((inode, size, mtime, ctime), count) in data["files"].items()
                }
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()
        return cache

    def to_json(self) -> str:
        """What is known of the files that this process asked for; there is no news then."""
        files = {file: known for file, known in self._stats.items() if file in self._used}
        self.dirty = False
        data = {file: (stamp, astuple(count)) for file, (stamp, count) in files.items()}
        return json.dumps({"form": _CACHE_FORMAT, "files": data}, separators=(",", ":"))

    def get(self, file: Path) -> FileStats:
        """What is in a memory or knowledge file; nothing where there is none."""
        return self.get_with_version(file)[1]

    def get_with_version(self, file: Path) -> tuple[FileVersion | None, FileStats]:
        """The same, with the stamp of the file that was counted; None for one that is left alone, or is not there."""
        name = str(file)
        self._used.add(name)
        try:
            status = os.lstat(name)
        except FileNotFoundError:
            return None, FileStats(0)
        except OSError as error:
            return None, FileStats(None, problem=f"{file.name} cannot be read: {error.strerror}.")
        if not S_ISREG(status.st_mode):
            return None, FileStats(None, problem=f"{file.name} is not a plain file; echod leaves it alone.")
        if status.st_size > MAX_FILE_BYTES:
            return None, FileStats(None, problem=f"{file.name} has {status.st_size:,} bytes, more than echod reads.")
        stamp = file_version(status)
        known = self._stats.get(name)
        if known is not None and known[0] == stamp:
            return known
        try:
            data = read_regular(file, MAX_FILE_BYTES)
        except OSError as error:  # also for a moment only, so this is not kept
            return None, FileStats(None, problem=f"{file.name} cannot be read: {error.strerror}.")
        known = self._stats[name] = (stamp, _compute_file_stats(file.name, data))
        self.dirty = True
        return known


def _compute_file_stats(name: str, data: bytes) -> FileStats:

    return compute_file_stats(name, data)


log = get_logger(__name__)


def load_file_stats(file: Path) -> FileStatsCache:
    """What an earlier process left; nothing where there is none, or none that can be understood."""
    try:
        return FileStatsCache.from_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return FileStatsCache()


def save_file_stats(stats_cache: FileStatsCache, file: Path) -> None:
    """Leave what is new for the next process, if the directory is there; it is worth no trouble."""
    if not stats_cache.dirty or not file.parent.is_dir():
        return
    try:
        write_runtime_file(file, stats_cache.to_json())
    except OSError as error:
        log.info("file_stats_not_saved", reason=error.strerror)


def read_document(file: Path) -> Document | None:
    """What a file holds; None where there is none, or none that can be understood.

    Raises:
        OSError: it cannot be read.
    """
    # Slow to load, and mostly nothing has to be read.
    from echod.memory.document import parse  # noqa: PLC0415
    from echod.memory.model import Unreadable  # noqa: PLC0415

    try:
        document = parse(read_regular(file, MAX_FILE_BYTES))
    except FileNotFoundError:
        return None
    return None if isinstance(document, Unreadable) else document
