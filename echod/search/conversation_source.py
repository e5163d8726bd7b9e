"""The documents of a directory of conversations: what was said in each archive, without the output of tools.

A conversation is one document. A very long one is several, so that a result leads to the right place in it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from echod.files import file_version
from echod.search.documents import DocumentKind, DocumentScope, SearchDocument, SourceFile

_NAME: Final = re.compile(r"conversation-\d{1,10}\.md")
_TOOL_OUTPUT: Final = re.compile(r"<details><summary>(?:Result|Error)</summary>\n\n(`{3,})\n")
_PART_CHARACTERS: Final = 60_000
_TITLE_CHARACTERS: Final = 120
_TURN: Final = re.compile(r"^---\n\n### ", re.MULTILINE)


class ConversationSource(NamedTuple):
    """The archives of one directory, which belong to a project, or to none ("")."""

    memory: Path
    owner: str

    @property
    def key(self) -> str:
        """The unique name of the source."""
        return f"session:{self.memory}"

    @property
    def kinds(self) -> frozenset[DocumentKind]:
        """The kinds of its documents."""
        return frozenset({DocumentKind.SESSION})

    @property
    def scope(self) -> DocumentScope:
        """The scope of its documents."""
        return DocumentScope.PROJECT

    @property
    def project(self) -> str:
        """The project that it belongs to."""
        return self.owner

    @property
    def store(self) -> str:
        """The directory."""
        return str(self.memory)

    def list_files(self) -> Sequence[SourceFile]:
        """List the archives. Symbolic links are skipped."""
        found: list[SourceFile] = []
        try:
            with os.scandir(self.memory / "conversations") as entries:
                for entry in entries:
                    if _NAME.fullmatch(entry.name):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            found.append(SourceFile(Path(entry.path), file_version(status)))
        except FileNotFoundError:
            return ()
        return sorted(found)

    def read_documents(self, file: Path, data: bytes) -> Sequence[SearchDocument]:
        """Return the conversation of an archive in one or more parts."""
        from echod.memory.conversation.archive import parse_header, read_summary  # noqa: PLC0415  only a changed file

        text = data.decode("utf-8", "replace")
        header, summary = parse_header(text), " ".join(read_summary(text).split())
        start = max(0, text.find("\n# Conversation "))
        documents = []
        for number, (line, part) in enumerate(_parts(text, start)):
            name = file.stem if number == 0 else f"{file.stem}#{number + 1}"
            lead = f"{summary}\n\n" if number == 0 and summary else ""
            documents.append(
                SearchDocument(
                    id=name,
                    kind=DocumentKind.SESSION,
                    title=summary[:_TITLE_CHARACTERS] or file.stem,
                    body=lead + _without_tool_output(part),
                    line=line,
                    date="" if header is None else header.date[:10],
                    source="" if header is None else header.session_id,
                )
            )
        return documents


def _parts(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the line of each part and the part. A part ends before a turn."""
    begin = start
    for turn in _TURN.finditer(text, start):
        if turn.start() - begin > _PART_CHARACTERS:
            yield _line_of(text, begin), text[begin : turn.start()]
            begin = turn.start()
    yield _line_of(text, begin), text[begin:]


def _without_tool_output(text: str) -> str:
    """Return the text without the output of tools. An output without an end is kept."""
    kept: list[str] = []
    done = 0
    unclosed: set[str] = set()  # fences without an end from here on, so that none is looked for twice
    for opening in _TOOL_OUTPUT.finditer(text):
        closing = f"\n{opening[1]}\n\n</details>\n"
        if opening.start() < done or closing in unclosed:
            continue
        end = text.find(closing, opening.end())
        if end < 0:
            unclosed.add(closing)
            continue
        kept.append(text[done : opening.start()])
        done = end + len(closing)
    return "".join((*kept, text[done:]))


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1 + (text[position : position + 1] == "\n")
