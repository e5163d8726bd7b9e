"""Read a directory of auto memory: its index, the part of it that the host loads, and the files that it names.

The host loads the first 200 lines and 25,000 characters of `MEMORY.md`, without front matter, without comments that
are blocks of their own, and without blank lines at both ends. It counts characters as JavaScript does, so an emoji
is two. These rules were measured with Claude Code 2.1.332; `tests/client` repeats the measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from echod.lazy import lazy_pattern
from echod.memory.text import load_yaml_fields

INDEX: Final = "MEMORY.md"
"""The name of the index."""

MAX_LOADED_LINES: Final = 200
MAX_LOADED_CHARACTERS: Final = 25_000

_NAMED_PATH = lazy_pattern(r"`((?:~/|/(?!/))[^`\s*?{}$<>|]{1,300})`")
"""A path in back quotes that means the same from everywhere: absolute, or below the home directory."""

_LINE_SUFFIX = lazy_pattern(r":\d+(?:-\d+)?$")

READ_FIELDS: Final = frozenset({"name", "description", "metadata", "type", "modified", "supersedes"})
"""The fields of front matter that the host reads or writes, and the one by which notes replace each other."""

MEMORY_TYPES: Final = ("user", "feedback", "project", "reference")
"""The types that the host gives to memories."""

_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})")
_COMMENT_START = lazy_pattern(r" {0,3}<!--")
_COMMENT = lazy_pattern(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LINK = lazy_pattern(
    r"\[(?P<title>[^\]\n]{1,400})\]\((?P<target><[^>\n]{1,400}>|[^)\s]{1,400})(?:\s{1,9}[\"'][^)\n]{0,400})?\)"
)
_POINTER = lazy_pattern(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_WIKI_LINK = lazy_pattern(r"\[\[([^\[\]\n|#]{1,200})(?:[|#][^\]\n]{0,200})?\]\]")
_URL = lazy_pattern(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_FIELD = lazy_pattern(r"(?P<indent>[ \t]*)(?P<name>[A-Za-z_][\w.-]*):(?:[ \t]+(?P<value>.*))?")


class Pointer(NamedTuple):
    """A line of the index that names a file. `target` is relative to the directory, `line` counts from 1."""

    line: int
    title: str
    target: str


class LoadedIndex(NamedTuple):
    """The index as the host counts it. `first_cut` is the first line of the file that is not loaded, if any."""

    lines: int
    characters: int
    first_cut: int | None

    @property
    def over(self) -> bool:
        """True if the host does not load all of it."""
        return self.first_cut is not None

    def loads(self, line: int) -> bool:
        """Return whether the host loads a line of the file."""
        return self.first_cut is None or line < self.first_cut


class FrontMatterField(NamedTuple):
    """A line of front matter: its name, its value as written, and its line in the file."""

    name: str
    written: str
    line: int


class NoteFile:
    """A file beside the index. `name` is relative to the directory, `modified` its time in Unix seconds."""

    def __init__(self, name: str, data: bytes, modified: float) -> None:
        self.name = name
        self.data = data
        self.modified = modified

    @cached_property
    def text(self) -> str | None:
        """The text with line feeds; None if it is not UTF-8."""
        try:
            return self.data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            return None

    @cached_property
    def _parts(self) -> tuple[tuple[FrontMatterField, ...], str, int] | None:
        return split_front_matter(self.text or "")

    @property
    def has_front_matter(self) -> bool:
        """Whether the file begins with complete front matter."""
        return self._parts is not None

    @property
    def written_fields(self) -> tuple[FrontMatterField, ...]:
        """The lines of its front matter that have a name."""
        return () if self._parts is None else self._parts[0]

    @property
    def body(self) -> str:
        """The text below the front matter."""
        return (self.text or "") if self._parts is None else self._parts[1]

    @property
    def body_line(self) -> int:
        """The line at which `body` begins, from 1."""
        return 1 if self._parts is None else self._parts[2]

    @cached_property
    def fields(self) -> Mapping[str, Any] | None:
        """The front matter as YAML, those below `metadata` included; None if it is no valid mapping."""
        if self._parts is None:
            return None
        end = self.body_line - 2
        return load_fields("\n".join((self.text or "").split("\n")[1:end]))

    def value(self, name: str) -> str:
        """Return a value of the front matter as one line; "" if there is none."""
        found = (self.fields or {}).get(name)
        return "" if found is None else " ".join(str(found).split())

    @property
    def title(self) -> str:
        """Its name in the front matter, else the name of the file without its ending."""
        return self.value("name") or self.name.rpartition("/")[2].removesuffix(".md")

    @property
    def changed_at(self) -> float:
        """When it was changed by its own `modified` field, else by its time on the disk (Unix seconds)."""
        found = (self.fields or {}).get("modified")
        if isinstance(found, str):
            try:
                found = datetime.fromisoformat(found)
            except ValueError:
                return self.modified
        if isinstance(found, datetime):
            return found.timestamp()
        if isinstance(found, date):
            return datetime(found.year, found.month, found.day, tzinfo=UTC).timestamp()
        return self.modified

    def links(self) -> Iterator[tuple[int, str]]:
        """Yield the names in double brackets and the Markdown files that the body links, each with its line."""
        for number, line in enumerate(self.body.split("\n"), start=self.body_line):
            for match in _WIKI_LINK.finditer(line):
                yield number, match[1].strip()
            for match in _LINK.finditer(line):
                target = link_target(match["target"])
                if target is not None and target.endswith(".md") and not target.startswith(("/", "~", "..")):
                    yield number, target

    def named_paths(self) -> Iterator[tuple[int, str]]:
        """Yield the absolute paths, and those below the home directory, that the body names, each with its line."""
        for number, line in enumerate(self.body.split("\n"), start=self.body_line):
            for match in _NAMED_PATH.finditer(line):
                path = _LINE_SUFFIX.sub("", match[1])
                if path.count("/") > 1:  # one alone is a command or a route more often
                    yield number, path


class MemoryDirectory(NamedTuple):
    """A directory of auto memory. `index_file` is None if there is none; `others` are files that are no Markdown.

    `unreadable` are files that could not be read, each with the reason. `missing_paths` are those of `named_paths` that
    do not exist although the directory above them does.
    """

    index_file: NoteFile | None
    notes: tuple[NoteFile, ...]
    others: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    missing_paths: frozenset[str] = frozenset()


def split_front_matter(text: str) -> tuple[tuple[FrontMatterField, ...], str, int] | None:
    """Return the lines of the front matter, the text below it and its first line; None if there is none that ends."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return None
    end = next((index for index in range(1, len(lines)) if lines[index].rstrip() == "---"), None)
    if end is None:
        return None
    fields = tuple(
        FrontMatterField(match["name"], (match["value"] or "").strip(), number)
        for number, line in enumerate(lines[1:end], start=2)
        if (match := _FIELD.fullmatch(line.rstrip()))
    )
    return fields, "\n".join(lines[end + 1 :]), end + 2


def load_fields(front: str) -> Mapping[str, Any] | None:
    """Return YAML front matter with the values below `metadata` beside the others; None if it is no mapping."""
    if not front.strip():
        return {}
    found = load_yaml_fields(front)
    if found is None:
        return None
    metadata = found.get("metadata")
    return {**(metadata if isinstance(metadata, dict) else {}), **found}


def utf16_length(text: str) -> int:
    """Return the length of a text as JavaScript counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def load_index(text: str) -> LoadedIndex:
    """Return what the host loads of an index."""
    kept = list(_counted_lines(text.replace("\r\n", "\n").split("\n")))
    while kept and not kept[0][1].strip():
        del kept[0]
    while kept and not kept[-1][1].strip():
        del kept[-1]
    lengths = [utf16_length(line) for _, line in kept]
    characters = max(0, sum(lengths) + len(lengths) - 1)
    loaded = used = 0
    for length in lengths[:MAX_LOADED_LINES]:
        used += length + (loaded > 0)
        if used > MAX_LOADED_CHARACTERS:
            break
        loaded += 1
    return LoadedIndex(len(kept), characters, kept[loaded][0] if loaded < len(kept) else None)


def _counted_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that count, each with its number in the file, from 1."""
    start = 0
    if lines[0].rstrip() == "---":
        end = next((index for index in range(1, len(lines)) if lines[index].rstrip() == "---"), None)
        start = 0 if end is None else end + 1
    fence = ""
    index = start
    while index < len(lines):
        line = lines[index]
        match = _FENCE.match(line)
        if fence:
            fence = "" if match and match[1].startswith(fence) else fence
        elif match:
            fence = match[1]
        elif _COMMENT_START.match(line) and (end := _comment_end(lines, index)) is not None:
            rest = _COMMENT.sub("", "\n".join(lines[index : end + 1]))
            if rest.strip():
                yield end + 1, rest.strip("\n")
                index = end + 1
                continue
            index = end + 1
            while index < len(lines) and not lines[index].strip():  # the blank lines below belong to the comment
                index += 1
            continue
        yield index + 1, line
        index += 1


def _comment_end(lines: Sequence[str], start: int) -> int | None:
    """Return the index of the line in which a comment ends; None if it never does."""
    if "-->" in lines[start].partition("<!--")[2]:
        return start
    return next((index for index in range(start + 1, len(lines)) if "-->" in lines[index]), None)


def find_pointers(text: str) -> list[Pointer]:
    """Return the list items of an index that name a file, in order. Code and comments are passed over."""
    return [
        Pointer(number, match["title"].strip(), target)
        for number, line in _counted_lines(text.replace("\r\n", "\n").split("\n"))
        if _POINTER.match(line)
        for match in _LINK.finditer(line)
        if (target := link_target(match["target"])) is not None
    ]


def named_files(text: str) -> set[str]:
    """Return every file that a link anywhere in the index names."""
    found = (link_target(match["target"]) for match in _LINK.finditer(text))
    return {target for target in found if target is not None} | {
        f"{m[1].strip()}.md" for m in _WIKI_LINK.finditer(text)
    }


def link_target(written: str) -> str | None:
    """Return the file that a link names, relative to the directory; None for an address or a place in the same file."""
    target = written.strip("<>").partition("#")[0]
    if not target or _URL.match(target):
        return None
    return unquote(target).removeprefix("./")


def existing_names(directory: MemoryDirectory) -> set[str]:
    """Return the names of all files of a directory, readable or not, except for the index."""
    return {
        *(note.name for note in directory.notes),
        *directory.others,
        *(name for name, _ in directory.unreadable),
    }


def dead_pointers(directory: MemoryDirectory, pointers: Iterable[Pointer]) -> list[Pointer]:
    """Return the pointers to files of the directory that do not exist. Files elsewhere are not looked for."""
    existing = existing_names(directory)
    parents = {name.rpartition("/")[0] for name in existing} | {INDEX}
    return [
        pointer
        for pointer in pointers
        if not pointer.target.startswith(("/", "~", "../"))
        and pointer.target not in existing
        and pointer.target.rstrip("/") not in parents
    ]


def unnamed_notes(directory: MemoryDirectory, named: Iterable[str]) -> list[NoteFile]:
    """Return the files that the index does not name, by their path, by their name, or in brackets."""
    targets = {target.casefold() for target in named}
    return [
        note
        for note in directory.notes
        if note.name.casefold() not in targets and f"{note.value('name').casefold()}.md" not in targets
    ]


def similar_file(target: str, existing: Iterable[str]) -> str | None:
    """Return the one file whose name differs from a missing one in case, folder, `-` or `_` only; None without one."""
    wanted = _plain_name(target)
    found = [name for name in existing if _plain_name(name) == wanted]
    return found[0] if len(found) == 1 else None


def _plain_name(name: str) -> str:
    return re.sub(r"[-_ ]+", "-", name.rpartition("/")[2].casefold().removesuffix(".md"))
