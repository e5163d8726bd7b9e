"""Split the text of a section that only groups findings: list items, bold paragraphs, rows of tables, blocks of data.

A list is a list of findings if its items are statements, not names. A list below a sentence that introduces it
("The migration takes three steps:") belongs to that sentence, unless the sentence announces findings. Paragraphs that
begin in bold begin a learning each, with everything below them, if there are at least two. All other text between two
lists is one learning.

Agents number and mark items in more ways than Markdown knows: `a)`, `(1)`, `F-2:`, `IV.`, `→`. Such a mark makes an
item only in a series that counts on from the first, or at the start of several lines.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.findings.fields import ClassifiedLine, extract_fields, learning_text
from echod.memory.findings.nothing import names_severity, reports_nothing
from echod.memory.findings.records import (
    FindingRecord,
    LineKind,
    indent_width,
    is_thematic_break,
    list_content_offset,
    opens_table,
    parse_fence,
    read_data,
    read_rows,
    read_table_rows,
)
from echod.memory.findings.sections import is_boilerplate
from echod.memory.findings.text import normalize_spaces, read_title

_MIN_ITEMS = 2
_MIN_STATEMENT_WORDS = 4
_MIN_UNSPACED_LENGTH = 10
_MAX_LEAD_LENGTH = 120
_ANNOUNCES = lazy_pattern(
    r"\b(?:findings?|issues?|problems?|learnings?|lessons?|points?|observations?|patterns?|bugs?|concerns?|insights?|takeaways?|"
    r"notes?|results?|things|following|gotchas?|pitfalls?|recommendations?|suggestions?)\b",
    re.IGNORECASE,
)
_LEAD = lazy_pattern(
    r"(?P<marks>\*\*|__)(?P<lead>[^*_\n][^\n]{0,160}?)(?P=marks)(?P<joint>[ \t]*(?:[:\u2014\u2013-][ \t]*)?)"
)
_NUMBERED = lazy_pattern(
    r"(?:finding|issue|learning|lesson|observation|problem|bug|risk|insight)s?"
    r"[ ]{0,2}#?\d{1,3}[ ]{0,2}[:.)\u2013\u2014-](?=\s)",
    re.IGNORECASE,
)
_CHECKBOX = lazy_pattern(r"\[[ xX]\][ \t]+")
_DATA = frozenset({"json", "jsonc", "json5", "yaml", "yml", "jsonl", "ndjson", "csv", "tsv", "toml", "xml"})
_LABEL = lazy_pattern(
    r"[ ]{0,3}(?:\*\*|__)?(?P<open>[(\[\uff08]?)(?P<prefix>\#|(?:[A-Z]{1,8}-?(?=\d))?)"
    r"(?P<number>\d{1,3}|[^\W\d_]{1,4})\ufe0f?\u20e3?"
    r"(?P<close>[ ][-\u2013\u2014](?=[ ])|[.:)\]\u3001\uff09\uff0e\uff1a]{0,2})"
    r"(?:\*\*|__)?[.:)]?(?:[ \t]+|(?<=[\u3001\uff09\uff0e\uff1a]))(?=\S)"
)
_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "\u0430\u0431\u0432\u0433\u0434\u0435\u0436\u0437\u0438\u043a\u043b\u043c\u043d\u043e\u043f\u0440\u0441\u0442",
    "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8",
    "\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341",
)
_ROMANS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv", "xvi")
_MARK_CATEGORIES = frozenset({"So", "Sm", "Pd"})
_CELL = lazy_pattern(r"(?<!\\)\|")
_MIN_TABLE_LINES = 3  # names, the rule below them, one row
_SEPARATORS = ",;\t|"


class _Block(NamedTuple):
    """Consecutive lines of one kind: `item`, `table`, `data` or `text`. `offset` is that of an item's content."""

    kind: str
    lines: tuple[ClassifiedLine, ...]
    offset: int = 0


def read_document(text: str) -> tuple[FindingRecord, ...] | None:
    """Return the findings in a document that is nothing but data; None if it is none or not a list of findings."""
    found = read_data(text)
    return _read_separated(text.strip("\n").split("\n")) if found is None else found


def _read_separated(lines: Sequence[str]) -> tuple[FindingRecord, ...] | None:
    """Return the findings in lines of values below a line of names (CSV, whatever separates the values)."""
    for separator in () if opens_table(lines) else _SEPARATORS:
        if separator not in lines[0]:
            continue
        try:
            head, *rows = csv.reader([line for line in lines if line.strip()], delimiter=separator, strict=True)
        except (csv.Error, ValueError):
            continue
        found = read_rows(head, rows)
        if found is not None:
            return found
    return None


def _read_table(lines: Sequence[str]) -> tuple[FindingRecord, ...] | None:
    if len(lines) < _MIN_TABLE_LINES or not opens_table(lines):
        return _read_separated(lines)
    return read_table_rows(_cells(lines[0]), [_cells(line) for line in lines[2:]])


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL.split(line.strip().removeprefix("|").removesuffix("|"))]


def split_learnings(lines: Sequence[ClassifiedLine]) -> tuple[FindingRecord, ...] | None:
    """Return the learnings in a text without a heading of its own; None if it is one learning."""
    blocks = list(_blocks(lines))
    leads = [index for index, block in enumerate(blocks) if block.kind == "text" and _lead(block.lines[0][0])]
    if len(leads) >= _MIN_ITEMS:
        return tuple(_split_at_leads(blocks, leads))
    records: list[FindingRecord] = []
    rest: list[_Block] = []
    topic: str | None = None
    was_split = False
    index = 0
    while index < len(blocks):
        block = blocks[index]
        end = index + 1
        found: tuple[FindingRecord, ...] | None = None
        if block.kind == "item":
            while end < len(blocks) and blocks[end].kind == "item":
                end += 1
            introduction = _introduction(rest)
            if _are_statements(blocks[index:end]) and (introduction is None or _announces(introduction)):
                found = tuple(_item_record(item) for item in blocks[index:end] if not _is_nothing(item))
        elif block.kind in {"table", "data"}:
            texts = [text for text, _ in block.lines]
            found = _read_table(texts) if block.kind == "table" else read_document("\n".join(texts[1:-1]))
        elif block.kind == "text" and len(block.lines) > 1:
            found = _read_separated([text for text, _ in block.lines])
        if found is None:
            rest += blocks[index:end]
        else:
            introduction = _introduction(rest)
            if introduction is not None:
                rest.pop()
                topic = None if is_boilerplate(introduction) else introduction.rstrip(" :\uff1a")
            records += _prose_records(rest)
            records += [r._replace(fields=(*r.fields, ("topic", topic))) if topic else r for r in found]
            rest, topic, was_split = [], None, True
        index = end
    if not was_split:
        return None
    return (*records, *_prose_records(rest))


def _blocks(lines: Sequence[ClassifiedLine]) -> Iterator[_Block]:
    """Yield the blocks of a text in order. Blank lines and separators between blocks are left out."""
    offsets = _item_offsets(lines)
    index = 0
    while index < len(lines):
        text, kind = lines[index]
        end = index + 1
        if kind is LineKind.TEXT and index not in offsets and (not text.strip() or is_thematic_break(text)):
            index = end
            continue
        if index in offsets:
            offset = offsets[index]
            while end < len(lines) and _continues_item(lines, end, offsets, offset or 2):
                end += 1
            block = _Block("item", tuple(lines[index:end]), offset)
        elif kind is LineKind.TEXT and (
            text.lstrip().startswith("|") or opens_table([line for line, _ in lines[index : index + 2]])
        ):
            mark = "|" if text.lstrip().startswith("|") else ""
            while end < len(lines) and lines[end][1] is LineKind.TEXT and _is_row(lines[end][0], mark):
                end += 1
            block = _Block("table", tuple(lines[index:end]))
        elif kind is LineKind.CODE:
            fence = parse_fence(text)
            while end < len(lines) and lines[end][1] is LineKind.CODE and not (fence and parse_fence(lines[end][0])):
                end += 1
            end = min(end + 1, len(lines)) if end < len(lines) and lines[end][1] is LineKind.CODE else end
            is_data = fence is not None and fence[1].split(" ")[0].casefold() in _DATA
            block = _Block("data" if is_data else "text", tuple(lines[index:end]))
        else:
            while end < len(lines) and end not in offsets and _continues_paragraph(lines[end], kind):
                end += 1
            block = _Block("text", tuple(lines[index:end]))
        yield block
        index = end


def _item_offsets(lines: Sequence[ClassifiedLine]) -> Mapping[int, int]:
    """Return, for each line that begins an item of a list, the offset of the item's content."""
    offsets: dict[int, int] = {}
    labels: defaultdict[tuple[str, ...], list[tuple[int, int, int]]] = defaultdict(list)
    marks: dict[int, int] = {}
    signs: set[str] = set()
    for index, (text, kind) in enumerate(lines):
        if kind is not LineKind.TEXT or not text.strip():
            continue
        offset = list_content_offset(text)
        if offset is not None:
            offsets[index] = offset
            continue
        label = _LABEL.match(text)
        if label is not None:
            keeps_label = label["prefix"].strip("#") != ""
            for form, number in _ordinals(label):
                labels[form].append((number, index, 0 if keeps_label else label.end()))
        elif (mark := _mark_length(text)) is not None:
            marks[index] = mark
            signs.add(text[:mark].strip())
    for series in labels.values():
        offsets.update(_counted(series))
    is_nested = all(indent_width(lines[index][0]) > 1 for index in offsets)
    if len(marks) >= _MIN_ITEMS and is_nested:
        # Different signs, such as a tick and a cross, have a meaning, and stay in the text.
        offsets.update(marks if len(signs) == 1 else dict.fromkeys(marks, 0))
    return offsets


def _ordinals(label: re.Match[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each series that a label may belong to, by its form, and the label's number in it."""
    word, prefix, close = label["number"], label["prefix"], label["close"]
    form = (label["open"], prefix, close)
    circled = unicodedata.digit(word, 0) if len(word) == 1 else 0
    if not (close or prefix or circled or "\u20e3" in label[0]):
        return
    if word.isdecimal() or circled:
        yield (*form, "number"), circled or int(word)
        return
    if prefix:
        return
    case = "upper" if word.isupper() else "lower"
    lower = word.lower()
    for alphabet in _ALPHABETS:
        if len(lower) == 1 and lower in alphabet:
            yield (*form, case, alphabet), alphabet.index(lower) + 1
    if lower in _ROMANS:
        yield (*form, case, "roman"), _ROMANS.index(lower) + 1


def _counted(series: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield line and offset of the labels that count on from one, at least two of them."""
    run: list[tuple[int, int]] = []
    for number, index, offset in series:
        if number == len(run) + 1:
            run.append((index, offset))
        elif number == 1:
            yield from run if len(run) >= _MIN_ITEMS else ()
            run = [(index, offset)]
    yield from run if len(run) >= _MIN_ITEMS else ()


def _mark_length(line: str) -> int | None:
    """Return where the text begins after a sign that can mark an item (an arrow, a star, a tick); None without one."""
    indent = indent_width(line)
    mark, space, rest = line[indent:].partition(" ")
    signs = mark.replace("\ufe0f", "")
    if indent > 3 or not rest.strip() or len(signs) != 1 or unicodedata.category(signs) not in _MARK_CATEGORIES:  # noqa: PLR2004 - more is code
        return None
    if signs in "+=<>|~":
        return None
    return indent + len(mark) + len(space)


def _is_row(line: str, mark: str) -> bool:
    return "|" in line and line.lstrip().startswith(mark)


def _continues_item(lines: Sequence[ClassifiedLine], index: int, offsets: Mapping[int, int], offset: int) -> bool:
    text, kind = lines[index]
    if kind is not LineKind.TEXT:
        return kind is LineKind.NESTED or indent_width(text) >= min(offset, 2) or not text.strip()
    if text.strip():
        # A line without a blank line before it continues the item's paragraph.
        if indent_width(text) >= min(offset, 2):
            return True
        return index not in offsets and bool(lines[index - 1][0].strip()) and not is_thematic_break(text)
    return any(
        later_kind in {LineKind.NESTED, LineKind.CODE} and indent_width(later) > 0
        for later, later_kind in lines[index + 1 : index + 2]
    )


def _continues_paragraph(line: ClassifiedLine, first_kind: LineKind) -> bool:
    text, kind = line
    if kind is not first_kind:
        return False
    if kind is not LineKind.TEXT:
        return True
    return bool(text.strip()) and list_content_offset(text) is None and not text.lstrip().startswith("|")


def _introduction(blocks: Sequence[_Block]) -> str | None:
    """Return the last paragraph if it introduces what follows."""
    if not blocks or blocks[-1].kind != "text" or blocks[-1].lines[-1][1] is not LineKind.TEXT:
        return None
    text = " ".join(line.strip() for line, _ in blocks[-1].lines)
    return text if text.rstrip("*_ ").endswith((":", "\uff1a")) else None


def _announces(introduction: str) -> bool:
    return is_boilerplate(introduction) or _ANNOUNCES.search(introduction) is not None


def _are_statements(items: Sequence[_Block]) -> bool:
    """Return whether list items are learnings: at least two, and sentences rather than names."""
    contents = [_content(item) for item in items if not _is_nothing(item)]
    if len(contents) < _MIN_ITEMS:
        return len(contents) < len(items) and all(map(_is_nothing_or_statement, items))
    return sum(map(_is_statement, contents)) * 2 > len(contents) and sum(
        len(content.split()) if content.isascii() else max(len(content.split()), len(content) // 3)
        for content in contents
    ) >= _MIN_STATEMENT_WORDS * len(contents)


def _is_nothing_or_statement(item: _Block) -> bool:
    return _is_nothing(item) or _is_statement(_content(item))


def _is_statement(content: str) -> bool:
    if content.isascii():
        return len(content.split()) >= _MIN_STATEMENT_WORDS
    return len(content.split()) >= _MIN_STATEMENT_WORDS or len(content) >= _MIN_UNSPACED_LENGTH


def _is_nothing(item: _Block) -> bool:
    content = _content(item)
    label, colon, value = content.partition(":")
    return reports_nothing(content) or bool(
        colon and len(label) <= _MAX_LEAD_LENGTH // 4 and reports_nothing(value.strip("* "))
    )


def _content(item: _Block) -> str:
    head = item.lines[0][0][item.offset :]
    own = [
        text.strip()
        for text, kind in item.lines[1:]
        if kind is not LineKind.CODE and list_content_offset(text.lstrip()) is None
    ]
    return " ".join([head.strip(), *own]).strip()


def _item_record(item: _Block) -> FindingRecord:
    first, offset = item.lines[0][0], item.offset
    lines = [(_CHECKBOX.sub("", first[offset:], count=1), LineKind.TEXT)]
    for text, kind in item.lines[1:]:
        dedented = text[min(offset, indent_width(text)) :]
        lines.append((dedented, LineKind.TEXT if kind is LineKind.NESTED else kind))
    return _record(lines)


def _record(lines: Sequence[ClassifiedLine]) -> FindingRecord:
    """Return the record of a learning whose first line may begin with its title in bold."""
    head, *rest = lines
    match = _LEAD.match(head[0].lstrip())
    extracted = extract_fields([text for text, _ in rest], [kind for _, kind in rest])
    lead = _title_of(match["lead"]) if match else None
    if match is None or lead is None:
        return FindingRecord(None, extracted.fields, _text([head, *extracted.body_lines]))
    below = head[0].lstrip()[match.end() :].lstrip()
    body = [(below, LineKind.TEXT), *extracted.body_lines] if below.strip() else list(extracted.body_lines)
    return FindingRecord(lead, extracted.fields, _text(body))


def _text(lines: Sequence[ClassifiedLine]) -> str:
    return learning_text(lines, strip_leading=False)


def _title_of(lead: str) -> str | None:
    """Return the bold beginning of a learning if it can be its title; severities and single labels cannot."""
    bare = lead.strip(" :.\uff1a")
    words = bare.split()
    if (
        len(bare) > _MAX_LEAD_LENGTH
        or (names_severity(bare) and len(words) <= _MIN_ITEMS)
        or read_title(bare).text == ""
    ):
        return None
    return bare if len(words) > 1 or not bare.isascii() else None


def _lead(line: str) -> bool:
    bare = normalize_spaces(line).lstrip()
    if _NUMBERED.match(bare):
        return True
    match = _LEAD.match(bare)
    return match is not None and _title_of(match["lead"]) is not None


def _split_at_leads(blocks: Sequence[_Block], leads: Sequence[int]) -> Iterator[FindingRecord]:
    yield from _prose_records(blocks[: leads[0]])
    for index, end in zip(leads, [*leads[1:], len(blocks)], strict=True):
        lines = list(blocks[index].lines)
        for block in blocks[index + 1 : end]:
            lines += [("", LineKind.TEXT), *block.lines]
        yield _record([(lines[0][0].lstrip(), LineKind.TEXT), *lines[1:]])


def _prose_records(blocks: Sequence[_Block]) -> Iterator[FindingRecord]:
    """Yield the text between lists as one learning, without boilerplate."""
    lines: list[ClassifiedLine] = []
    for block in blocks:
        lines += [*([("", LineKind.TEXT)] if lines else []), *block.lines]
    text = learning_text(lines, strip_leading=True)
    if text and not reports_nothing(text):
        yield FindingRecord(None, (), text)
