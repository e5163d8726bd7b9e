"""Merge two branches of a memory file by entry, and of an archive, with the same result whichever is given first.

`merge` serves a file with one visible version. Here both sides are equals: two clones, or two machines. Additions of
both stay, an edit beats a deletion, and edits of different lines of an entry are combined. Only an entry that was
rewritten on both sides in the same lines is a conflict, which the caller renders as it needs (`MergedBranches`).

Order: the blocks of the base keep their order, or the order of the branch that rearranged them. Additions keep the
order of their branch. Where both branches added in one place, additions are interleaved by date, then by text, so that
three branches give one result in whatever sequence they are merged.

An archive is a sequence of records: a comment line of echod's, then a text. A record of an entry has the length of its
text in that line (`policy.archive`), so a text with such a line in it stays whole. Text before the first record is one,
too. Records are compared by their text alone.

Git starts a process of the merge driver for each file, so what is imported here is little.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import date
from functools import partial
from typing import NamedTuple, TypeVar

from echod.lazy import lazy_imports, lazy_pattern
from echod.memory.document import Version, VersionParser, parse_block
from echod.memory.identity import align, align_additions, block_content, block_heading
from echod.memory.merge import MergeFailure, merge_lines
from echod.memory.model import AnyBlock, Block, Unreadable

with lazy_imports(__name__):
    import json

T = TypeVar("T", bound=Hashable)

_START = -1
"""The place of additions before the first block of the base."""

_RECORD_START = lazy_pattern(rb"^<!-- echod(?::archived (\{[^\n]*\})|: [^\n]*) -->\r?\n", re.MULTILINE)
_DATE = lazy_pattern(rb'"date": "(\d{4}-\d\d-\d\d)"|^<!-- echod: [^\n]*?(\d{4}-\d\d-\d\d) -->')


class _Versions(NamedTuple):
    """A block, or the text before the blocks, in three versions; None where it does not exist."""

    base: AnyBlock | None
    one: AnyBlock | None
    other: AnyBlock | None


class _Part:
    """A piece of the result: its text without the blank lines behind it, or a conflict between two texts.

    `other` is the second version in a conflict. The text behind a part that ends a version must be separated from it.
    Parts with equal texts are different parts.
    """

    __slots__ = ("base", "block", "ends_a_version", "other", "tail")

    def __init__(
        self, block: AnyBlock, other: AnyBlock | None, base: AnyBlock | None, tail: str, *, ends_a_version: bool
    ) -> None:
        self.block, self.other, self.base, self.tail, self.ends_a_version = block, other, base, tail, ends_a_version

    @property
    def order(self) -> tuple[str, str]:
        """The place among additions of both branches: by date, then by text."""
        first = self.block if self.other is None else min(self.block, self.other, key=block_content)
        day = first.entry.heading_date if first.entry else None
        return ("" if day is None else day.isoformat(), block_content(first))


_Choice = Callable[[_Part], str]


class MergedBranches:
    """The merge of two branches, with its conflicts still open."""

    def __init__(self, parts: Sequence[_Part], newline: str, ending: str) -> None:
        self._parts, self._newline, self._ending = parts, newline, ending

    @property
    def conflicts(self) -> tuple[str, ...]:
        """The headings of the blocks that both branches rewrote, in file order."""
        return tuple(block_heading(part.block) for part in self._parts if part.other is not None)

    def with_markers(self, size: int, one: str = "ours", other: str = "theirs") -> bytes:
        """Return the file with both versions of each conflict between markers of `size` characters, as git writes it.

        `one` and `other` label the branches in the order in which they were given.
        """

        def choose(part: _Part) -> str:
            if part.other is None:
                return part.block.text.rstrip()
            lines = (f"{'<' * size} {one}", _text(part.block), "=" * size, _text(part.other), f"{'>' * size} {other}")
            return "\n".join(line for line in lines if line)

        return self._render(choose)

    def as_base(self) -> bytes:
        """Return the file with the base's version of each conflict, or neither where the base has none.

        For a base that git makes of several: the branches that are merged next resolve the conflict, or repeat it.
        """
        return self._render(lambda part: _text(part.block if part.other is None else part.base))

    def with_newer(self) -> tuple[bytes, tuple[str, ...]]:
        """Return the file with the newer version of each conflict, and the texts that lost.

        Of two versions the one with the later date of verification is the newer one, then the longer one.
        """
        overridden: list[str] = []

        def choose(part: _Part) -> str:
            if part.other is None:
                return part.block.text.rstrip()
            loser, winner = sorted((part.block, part.other), key=_newness)
            overridden.append(loser.text)
            return winner.text.rstrip()

        return self._render(choose), tuple(overridden)

    def find_problem(self, parser: VersionParser) -> str | None:
        """Return why the result would not read as the blocks that it is made of; None if it does."""
        sides: tuple[Callable[[_Part], AnyBlock], ...] = (
            lambda part: part.block,
            lambda part: part.other or part.block,
        )
        for side in sides if self.conflicts else sides[:1]:
            reparsed = parser.parse(self._render(partial(_text_of, side)))
            if isinstance(reparsed, Unreadable):
                return reparsed.reason
            expected = [block_content(side(part)) for part in self._parts[1:]]
            if [block_content(block) for block in reparsed.blocks] != expected:
                return "The merged file would not read as the same entries."
        return None

    def _render(self, choose: _Choice) -> bytes:
        chosen = [(text, part) for part in self._parts if (text := choose(part))]
        pieces = [text + (part.tail if i + 1 < len(chosen) else "") for i, (text, part) in enumerate(chosen)]
        joined = "".join(pieces) + (self._ending if pieces else "")
        return (joined.replace("\n", "\r\n") if self._newline == "\r\n" else joined).encode()


def merge_branches(base: bytes, one: bytes, other: bytes) -> MergedBranches | MergeFailure:
    """Merge two versions that descend from `base`, which is empty if both created the file.

    A version that cannot be read, or a result that would not read as the same blocks, is a `MergeFailure`.
    """
    parser = VersionParser()
    documents = []
    for data in (base, one, other):
        document = parser.parse(data.replace(b"\r\n", b"\n"))
        if isinstance(document, Unreadable):
            return MergeFailure(document.reason)
        documents.append(document)
    is_swapped = one > other
    first, second = documents[:0:-1] if is_swapped else documents[1:]
    parts = _Merge(documents[0], first, second).parts()
    if is_swapped:
        parts = [part if part.other is None else _swapped(part) for part in parts]
    newline = _three_way("\r\n" if b"\r\n" in base else "\n", *(_newline(data, base) for data in (one, other)))
    ending = _three_way(*(_ending(document) for document in documents))
    merged = MergedBranches(parts, newline, ending)
    problem = merged.find_problem(parser)
    return MergeFailure(problem) if problem else merged


def interleave(runs: Iterable[Sequence[T]], key: Callable[[T], tuple[str, ...]]) -> list[T]:
    """Return the items of all runs, each once, in the order of their runs; where they leave a choice, by `key`.

    The result of several runs is the same in whatever sequence they are combined.
    """
    queues = [deque(run) for run in runs if run]
    places = Counter(item for queue in queues for item in queue)
    done: set[T] = set()
    result: list[T] = []
    while queues := [queue for queue in queues if _drop(queue, done)]:
        heads = Counter(queue[0] for queue in queues)
        free = [item for item, count in heads.items() if count == places[item]] or list(heads)
        item = min(free, key=key)
        done.add(item)
        result.append(item)
    return result


def _drop(queue: deque[T], done: set[T]) -> bool:
    """Remove finished items from the front of a queue, and return whether anything is left."""
    while queue and queue[0] in done:
        queue.popleft()
    return bool(queue)


def unite_archives(one: bytes, other: bytes) -> bytes:
    """Return an archive with the records of both, each once, in their order and otherwise by date.

    The result is the same for `one` and `other` exchanged, and united again with either it does not change.
    """
    first, second = _records(one), _records(other)
    if set(first) == set(second):
        return min(one, other, key=lambda data: (not data.strip(), data))
    # A side with everything stays as it is, so that the other takes over its bytes.
    for data, records, others in ((one, first, second), (other, second, first)):
        if set(records) >= set(others):
            return data
    return b"\n\n".join(interleave([first, second], _order)) + b"\n"


def missing_records(before: bytes, after: bytes) -> list[str]:
    """Return the records of `before` that `after` lacks, as text."""
    present = set(_records(after))
    return [record.decode(errors="replace") for record in _records(before) if record not in present]


def _order(record: bytes) -> tuple[str, ...]:
    found = _DATE.search(record)
    day = "" if found is None else (found[1] or found[2]).decode()
    return day, record.decode(errors="surrogateescape")


def _records(data: bytes) -> list[bytes]:
    """Return the records of an archive without the blank lines around them. The text of an entry keeps its own."""
    starts, text_ends = [0], [0]
    position = 0
    while found := _RECORD_START.search(data, position):
        # A line with the reason comes before the record of the entry, and belongs to it.
        previous = data[starts[-1] : found.start()]
        is_introduced = found[1] is not None and _RECORD_START.fullmatch(previous.strip() + b"\n") is not None
        if not is_introduced:
            starts.append(found.start())
            text_ends.append(0)
        position = text_ends[-1] = min(found.end() + _text_length(found[1]), len(data))
    pieces = []
    for begin, text_end, end in zip(starts, text_ends, [*starts[1:], len(data)], strict=True):
        text = data[begin:end].rstrip(b"\r\n")
        pieces.append(data[begin : max(text_end, begin + len(text))].lstrip(b"\r\n"))
    return [piece for piece in dict.fromkeys(pieces) if piece.strip()]


def _text_length(header: bytes | None) -> int:
    """Return the length in bytes of the text behind a record's line, as far as the line has it."""
    try:
        fields = json.loads(header or b"{}")
    except (ValueError, RecursionError):
        return 0
    length = fields.get("bytes") if isinstance(fields, dict) else None
    return max(0, length) if isinstance(length, int) else 0


class _Merge:
    """One merge in progress. Nothing in it depends on anything but the three documents."""

    def __init__(self, base: Version, one: Version, other: Version) -> None:
        self._base, self._one, self._other = base, one, other
        self._in_one, self._in_other = (_align_with_renames(base, side) for side in (one, other))
        self._last = {id(doc.blocks[-1]) for doc in (base, one, other) if doc.blocks}

    def parts(self) -> list[_Part]:
        """Return the text before the blocks, then the blocks of the result."""
        preambles = [Block(doc.preamble, None) for doc in (self._base, self._one, self._other)]
        first = self._part(_Versions(*preambles), ends_a_version=not all(d.blocks for d in (self._one, self._other)))
        survivors = {
            position: part
            for position, block in enumerate(self._base.blocks)
            if (part := self._base_part(position, block)) is not None
        }
        additions = self._additions()
        result = [first or _Part(Block("", None), None, None, "", ends_a_version=False)]
        runs = list(additions.get(_START, ()))
        done: set[_Part] = set()
        for position in [*self._skeleton(), None]:
            if runs and (position is None or position in survivors):
                new = [part for part in interleave(runs, lambda part: part.order) if part not in done]
                done.update(new)
                result += new
                runs = []
            if position is not None:
                if position in survivors:
                    result.append(survivors[position])
                runs += additions.get(position, ())
        return result

    def _base_part(self, position: int, block: AnyBlock) -> _Part | None:
        one = _at(self._one, self._in_one.get(position))
        other = _at(self._other, self._in_other.get(position))
        return self._part(_Versions(block, one, other))

    def _additions(self) -> dict[int, list[list[_Part]]]:
        """Return the runs of added blocks by the position in the base of the block that they follow."""
        sides = ((self._one, self._in_one), (self._other, self._in_other))
        new = [sorted(set(range(len(doc.blocks))) - set(pairs.values())) for doc, pairs in sides]
        blocks = [[doc.blocks[j] for j in positions] for (doc, _), positions in zip(sides, new, strict=True)]
        partner = align_additions(*blocks)
        part_of: dict[int, _Part] = {}
        for index, block in enumerate(blocks[0]):
            match = blocks[1][partner[index]] if index in partner else None
            part = self._part(_Versions(None, block, match))
            if part is not None:
                part_of[id(block)] = part
                part_of.update({id(match): part} if match is not None else {})
        matched = set(partner.values())
        for index, block in enumerate(blocks[1]):
            if index not in matched and (part := self._part(_Versions(None, None, block))) is not None:
                part_of[id(block)] = part
        runs: dict[int, list[list[_Part]]] = {}
        for doc, pairs in sides:
            base_of = {j: i for i, j in pairs.items()}
            anchor: int = _START
            run: list[_Part] = []
            for j, block in enumerate(doc.blocks):
                if j in base_of:
                    anchor, run = base_of[j], []
                elif id(block) in part_of:
                    if not run:
                        runs.setdefault(anchor, []).append(run)
                    run.append(part_of[id(block)])
        return runs

    def _skeleton(self) -> list[int]:
        """Return all positions of the base in the order of the result."""
        orders = [sorted(pairs, key=pairs.__getitem__) for pairs in (self._in_one, self._in_other)]
        moved = [order for order in orders if order != sorted(order)]
        if not moved:
            return list(range(len(self._base.blocks)))
        order = list(moved[0])
        present = set(order)
        for position in range(len(self._base.blocks)):
            if position not in present:  # behind the one that it follows in the base
                order.insert(order.index(position - 1) + 1 if position else 0, position)
                present.add(position)
        return order

    def _part(self, versions: _Versions, *, ends_a_version: bool | None = None) -> _Part | None:
        """Return the merge of one block's versions, or None if it was removed."""
        base, one, other = versions
        if ends_a_version is None:
            ends = id(base) in self._last or id(one) in self._last or id(other) in self._last
        else:
            ends = ends_a_version
        if base is not None and one is not None and other is not None and base.text == one.text == other.text:
            return _Part(one, None, base, _separator(_tail(one), one, needs_blank_line=ends), ends_a_version=ends)
        contents = [None if block is None else block_content(block) for block in versions]
        if contents[1] == contents[2]:
            chosen = one
        elif contents[1] == contents[0]:
            chosen = other
        elif contents[2] == contents[0]:
            chosen = one
        elif one is None or other is None:  # removed in one branch and edited in the other
            chosen = one or other
        else:
            return self._both_changed(versions, ends_a_version=ends)
        if chosen is None:
            return None
        tail = _three_way(*(None if block is None else _tail(block) for block in versions))
        return _Part(chosen, None, base, _separator(tail, chosen, needs_blank_line=ends), ends_a_version=ends)

    def _both_changed(self, versions: _Versions, *, ends_a_version: bool) -> _Part:
        base, one, other = versions
        assert one is not None  # noqa: S101  the caller checked
        assert other is not None  # noqa: S101
        tail = _three_way(*(None if block is None else _tail(block) for block in versions))
        separator = _separator(tail, one, needs_blank_line=ends_a_version)
        texts = (one.text, other.text) if base is None else _with_later_verification(base, one, other)
        text = None
        if base is not None:
            text = texts[0] if texts[0].rstrip() == texts[1].rstrip() else merge_lines(base.text, *texts)
        if text is not None:
            return _Part(
                parse_block(text) if one.entry else Block(text, None),
                None,
                base,
                separator,
                ends_a_version=ends_a_version,
            )
        if base is None or not base.text.strip():
            for part, whole in ((one, other), (other, one)):
                if block_content(whole).startswith(block_content(part)):
                    return _Part(whole, None, base, separator, ends_a_version=ends_a_version)
        return _Part(one, other, base, separator, ends_a_version=ends_a_version)


def _align_with_renames(base: Version, side: Version) -> dict[int, int]:
    """Pair the blocks of two versions; entries with a new title by their body, if no other entry has it."""
    pairs = align(base.blocks, side.blocks)
    used = set(pairs.values())
    bodies: list[dict[str, list[int]]] = [{}, {}]
    for index, (document, taken) in enumerate(((base, set(pairs)), (side, used))):
        for position, block in enumerate(document.blocks):
            if position not in taken and block.body.strip():
                bodies[index].setdefault(block.body.strip(), []).append(position)
    for body, positions in bodies[0].items():
        partners = bodies[1].get(body, [])
        if len(positions) == 1 == len(partners):
            pairs[positions[0]] = partners[0]
    return pairs


def _with_later_verification(base: AnyBlock, one: AnyBlock, other: AnyBlock) -> tuple[str, str]:
    """Return both texts with the later of their dates of verification: two new dates are no conflict."""
    days = [block.entry.verified if block.entry else None for block in (base, one, other)]
    spans = _verified_span(one), _verified_span(other)
    if days[1] is None or days[2] is None or spans[0] is None or spans[1] is None or len(set(days)) < len(days):
        return one.text, other.text
    later, (begin, end) = (one, spans[0]) if days[1] > days[2] else (other, spans[1])
    value = later.text[begin:end]
    return _spliced(one.text, spans[0], value), _spliced(other.text, spans[1], value)


def _verified_span(block: AnyBlock) -> tuple[int, int] | None:
    fields = block.entry.fields if block.entry else ()
    return next(((field.span.start, field.span.end) for field in fields if field.name == "verified"), None)


def _spliced(text: str, span: tuple[int, int], value: str) -> str:
    return text[: span[0]] + value + text[span[1] :]


def _text_of(side: Callable[[_Part], AnyBlock], part: _Part) -> str:
    return side(part).text.rstrip()


def _swapped(part: _Part) -> _Part:
    assert part.other is not None  # noqa: S101  only conflicts are swapped
    return _Part(part.other, part.block, part.base, part.tail, ends_a_version=part.ends_a_version)


def _newness(block: AnyBlock) -> tuple[date, int, str]:
    verified = block.entry.verified if block.entry else None
    return verified or date.min, len(block_content(block)), block_content(block)


def _at(document: Version, position: int | None) -> AnyBlock | None:
    return None if position is None else document.blocks[position]


def _text(block: AnyBlock | None) -> str:
    return "" if block is None else block.text.rstrip()


def _tail(block: AnyBlock) -> str:
    return block.text[len(block.text.rstrip()) :]


def _separator(tail: str, block: AnyBlock, *, needs_blank_line: bool) -> str:
    """Return what separates a block from the next one."""
    if not block.text.strip():
        return ""
    return tail if tail.count("\n") > (1 if needs_blank_line else 0) else "\n\n"


def _three_way(base: str | None, one: str | None, other: str | None) -> str:
    """Return the value that changed; of two that changed the longer one."""
    if one == other or other is None or other == base:
        return (one if one is not None else other) or ""
    if one is None or one == base:
        return other
    return max(one, other, key=lambda value: (len(value), value))


def _newline(data: bytes, base: bytes) -> str | None:
    """Return the line ending of a version; None where a version without lines has none of its own."""
    if b"\n" not in data:
        return "\r\n" if b"\r\n" in base else "\n"
    return "\r\n" if 2 * data.count(b"\r\n") > data.count(b"\n") else "\n"


def _ending(document: Version) -> str:
    text = document.blocks[-1].text if document.blocks else document.preamble
    return text[len(text.rstrip()) :]
