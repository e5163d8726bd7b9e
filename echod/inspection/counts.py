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
from echod.files import Stamp, leave, read_plain, stamp_of
from echod.log import get_logger
from echod.memory.document import parse
from echod.memory.model import SIZE_LIMIT, Document, Unreadable
from echod.memory.policy.scoring import PROTECTED_LAYERS, document_lines, room, stays_open
from echod.memory.prompt_injection import may_speak_to_agents, speaks_to_agents

if TYPE_CHECKING:
    from echod.memory.model import Document


@dataclass(frozen=True, slots=True)
class Count:
    """What is in a file.

    Attributes:
        lines: its lines; None where it cannot be read or is left alone.
        entries: its entries by layer.
        problem: why it is left alone, in a sentence.
        staying: lines that no rule ever takes out, pinned entries aside.
        speaks: whether one of its entries reads like an instruction to agents.
    """

    lines: int | None
    entries: Mapping[str, int] = field(default_factory=dict)
    problem: str | None = None
    staying: int = 0
    speaks: bool = False


def count(name: str, data: bytes) -> Count:
    """What is in the file of this name."""
    document = parse(data)
    if isinstance(document, Unreadable):
        return Count(None, problem=f"{name} is left alone: {document.reason}")
    layers = Counter(
        block.entry.layer.value if block.entry.layer is not None else "unknown"
        for block in document.blocks
        if block.entry is not None
    )
    speaks = may_speak_to_agents(data.decode()) and any(
        block.entry is not None and speaks_to_agents(block.text) for block in document.blocks
    )
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    return Count(lines, dict(layers), None, _staying(document), speaks)


def _staying(document: Document) -> int:
    lines, entries = room(document.preamble), 0
    above_is_open = False
    for block in document.blocks:
        entries += block.entry is not None
        if block.entry is None or block.entry.layer is None or block.entry.layer in PROTECTED_LAYERS or above_is_open:
            lines += room(block.text)
        above_is_open = stays_open(block.text)
    # The last entry of a file stays whatever it is.
    return document_lines(document) if entries <= 1 else lines


_FORM = f"{__version__}/1"
"""Who counts, and what; what another version left is counted anew."""


class Counted:
    """Counts by file; one for a process, owned by one thread."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Stamp, Count]] = {}
        self._asked: set[str] = set()
        self.has_news = False

    @classmethod
    def from_json(cls, text: str) -> Counted:
        """With what `to_json` of an earlier process said; with nothing where that cannot be understood."""
        made = cls()
        try:
            left = json.loads(text)
            if left["form"] == _FORM:
                made._known = {
                    file: ((inode, size, mtime, ctime), Count(*count))
                    for file, ((inode, size, mtime, ctime), count) in left["files"].items()
                }
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()
        return made

    def to_json(self) -> str:
        """What is known of the files that this process asked for; there is no news then."""
        files = {file: known for file, known in self._known.items() if file in self._asked}
        self.has_news = False
        left = {file: (stamp, astuple(count)) for file, (stamp, count) in files.items()}
        return json.dumps({"form": _FORM, "files": left}, separators=(",", ":"))

    def of(self, file: Path) -> Count:
        """What is in a memory or knowledge file; nothing where there is none."""
        return self.at(file)[1]

    def at(self, file: Path) -> tuple[Stamp | None, Count]:
        """The same, with the stamp of the file that was counted; None for one that is left alone, or is not there."""
        name = str(file)
        self._asked.add(name)
        try:
            status = os.lstat(name)
        except FileNotFoundError:
            return None, Count(0)
        except OSError as error:
            return None, Count(None, problem=f"{file.name} cannot be read: {error.strerror}.")
        if not S_ISREG(status.st_mode):
            return None, Count(None, problem=f"{file.name} is not a plain file; echod leaves it alone.")
        if status.st_size > SIZE_LIMIT:
            return None, Count(None, problem=f"{file.name} has {status.st_size:,} bytes, more than echod reads.")
        stamp = stamp_of(status)
        known = self._known.get(name)
        if known is not None and known[0] == stamp:
            return known
        try:
            data = read_plain(file, SIZE_LIMIT)
        except OSError as error:  # also for a moment only, so this is not kept
            return None, Count(None, problem=f"{file.name} cannot be read: {error.strerror}.")
        known = self._known[name] = (stamp, _count(file.name, data))
        self.has_news = True
        return known


def _count(name: str, data: bytes) -> Count:

    return count(name, data)


log = get_logger(__name__)


def take_up(file: Path) -> Counted:
    """What an earlier process left; nothing where there is none, or none that can be understood."""
    try:
        return Counted.from_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Counted()


def hand_on(counted: Counted, file: Path) -> None:
    """Leave what is new for the next process, if the directory is there; it is worth no trouble."""
    if not counted.has_news or not file.parent.is_dir():
        return
    try:
        leave(file, counted.to_json())
    except OSError as error:
        log.info("counts_not_left", reason=error.strerror)


def read_document(file: Path) -> Document | None:
    """What a file holds; None where there is none, or none that can be understood.

    Raises:
        OSError: it cannot be read.
    """
    # Slow to load, and mostly nothing has to be read.
    from echod.memory.document import parse  # noqa: PLC0415
    from echod.memory.model import Unreadable  # noqa: PLC0415

    try:
        document = parse(read_plain(file, SIZE_LIMIT))
    except FileNotFoundError:
        return None
    return None if isinstance(document, Unreadable) else document
