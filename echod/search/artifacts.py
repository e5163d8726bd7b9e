"""The documents that workflows left behind in `.rune/arc-history`: reviews, resolutions, summaries, gaps, verdicts.

Every template of these files is filled in by an agent, so all of it varies. They are read by their markers first
(`<!-- RUNE:FINDING ... -->`, `<!-- RESOLVED:ID:STATUS -->`), then by their list items (`- [ ] **[ID] title**`), then by
their headings. One finding or section is one document. Its title begins with the finding's id and severity.

The files of a run have no date of their own. `meta.json` beside them has one, which `read_run` reads.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from echod.files import file_version, read_regular
from echod.lazy import lazy_pattern
from echod.search.documents import DocumentKind, DocumentScope, SearchDocument, SourceFile, UnreadableFileError
from echod.search.sources import read_whole

HISTORY: Final = Path(".rune/arc-history")
ARTIFACT_TYPES: Final = {
    "tome.md": "tome", "resolution-report.md": "resolution", "work-summary.md": "work", "gap-analysis.md": "gap",
    "inspect-verdict.md": "inspect", "verdict.md": "inspect",
}  # fmt: skip
"""The type of each file of a run, by its name in lower case."""

_RUN_NAME: Final = lazy_pattern(r"arc-[A-Za-z0-9_.-]{1,120}")
_MAX_META_BYTES: Final = 64 * 1024
_ID_LENGTH: Final = 16
_MAX_TITLE_LENGTH: Final = 120
_MARKER: Final = lazy_pattern(r"<!--\s*RUNE:FINDING\b(?!:)(?P<attributes>[^>]*?)-->")
_RESOLVED: Final = lazy_pattern(r"<!--\s*RESOLVED:(?P<id>[^:\s]+):(?P<status>[A-Z_]+)\s*-->")
_CLOSING: Final = lazy_pattern(r"<!--\s*(?:/RUNE:FINDING|RUNE:FINDING:END|/RESOLVED)\b[^>]*-->")
_ATTRIBUTE: Final = lazy_pattern(r"\b(\w+)=\"([^\"]*)\"")
_POSITIONAL: Final = lazy_pattern(r"\s*([A-Za-z][\w-]*)\s+(P[1-3])\s*", re.IGNORECASE)
_ITEM: Final = lazy_pattern(
    r"\s{0,3}(?:[-*]\s+(?:\[[ xX]\]\s+)?)?\*\*\[(?P<id>[A-Za-z][\w-]*)\]\s*+(?P<title>[^*]*)\*\*"
)
_HEADING: Final = lazy_pattern(r"(?P<level>#{1,6})\s+(?P<text>\S(?:.*[^\s#])?)[\s#]*$")
_FINDING_HEADING: Final = lazy_pattern(
    r"\[?(?P<id>[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+)\]?\s*+(?:\((?P<p>P[1-3])\)\s*+)?:\s*(?P<title>.+)"
)
_SEVERITY: Final = lazy_pattern(r"\bP([1-3])\b")
_LOCATION: Final = lazy_pattern(r"(?:\bin\s+|\*\*File\*\*:\s*)`?(?P<path>[\w./@+-]+(?::\d+)?)`?")
_FENCE: Final = lazy_pattern(r"\s*(?:```|~~~)")
_LEVEL_OF_SECTION: Final = 2
TITLE: Final = lazy_pattern(r"\A(?P<id>\S{1,200})(?: \((?P<severity>P[1-3])\))?: (?P<title>.*)", re.DOTALL)
"""The form of the title of a finding."""


class RunInfo(NamedTuple):
    """A run in the history: its id, the time at which it was copied there, and its plan; "" where unknown."""

    id: str
    date: str
    plan: str


class ArtifactSource(NamedTuple):
    """The history of workflow runs of a project."""

    root: Path

    @property
    def key(self) -> str:
        """The unique name of the source."""
        return f"artifacts:{self.root}"

    @property
    def kinds(self) -> frozenset[DocumentKind]:
        """The kinds of its documents."""
        return frozenset({DocumentKind.ARTIFACT})

    @property
    def scope(self) -> DocumentScope:
        """The scope of its documents."""
        return DocumentScope.PROJECT

    @property
    def project(self) -> str:
        """The project."""
        return str(self.root)

    @property
    def store(self) -> str:
        """The directory of the history."""
        return str(self.root / HISTORY)

    def list_files(self) -> Sequence[SourceFile]:
        """List the readable files of all runs. Symbolic links are skipped."""
        return tuple(_iter_files(self.root))

    def read_file(self, path: Path) -> bytes:
        """Return the content of a file."""
        return read_whole(path)

    def read_documents(self, file: Path, data: bytes) -> Sequence[SearchDocument]:
        """Return the findings and sections of a file."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise UnreadableFileError("It is not UTF-8.") from error
        return tuple(read_artifact(ARTIFACT_TYPES[file.name.lower()], file.parent.name, text))


def read_run(directory: Path) -> RunInfo:
    """Return the facts about a run."""
    try:
        fields = json.loads(read_regular(directory / "meta.json", _MAX_META_BYTES, follow_symlinks=False))
    except (OSError, ValueError, RecursionError):
        fields = None
    values = fields if isinstance(fields, dict) else {}
    date, plan = (str(values.get(name) or "") for name in ("date", "plan_file"))
    return RunInfo(directory.name, date, plan)


def _iter_files(root: Path) -> Iterator[SourceFile]:
    history = root / HISTORY
    if not all(_is_directory(path) for path in (history.parent, history)):
        return
    for run in sorted(history.iterdir()):
        if not _RUN_NAME.fullmatch(run.name) or not _is_directory(run):
            continue
        seen: set[tuple[int, int]] = set()
        for path in sorted(run.iterdir()):
            if path.name.lower() not in ARTIFACT_TYPES:
                continue
            status = path.lstat()
            identity = (status.st_dev, status.st_ino)  # tome.md and TOME.md are one file on some file systems
            if stat.S_ISREG(status.st_mode) and identity not in seen:
                seen.add(identity)
                yield SourceFile(path, file_version(status))


def _is_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


class _Piece:
    """A finding or a section while its lines are read."""

    def __init__(self, line: int, heading: str = "", known: Mapping[str, str] | None = None) -> None:
        self.line = line
        self.heading = heading
        self.known = known or {}
        self.is_marked = False
        self.lines: list[str] = []

    @property
    def has_text(self) -> bool:
        """Whether there is anything but blank lines."""
        return any(line.strip() for line in self.lines)


def read_artifact(kind: str, run: str, text: str) -> Iterator[SearchDocument]:
    """Yield the documents of a file of a run."""
    for number, piece in enumerate(_split(text)):
        body = "\n".join(piece.lines).strip()
        if not body and not piece.known:
            continue
        yield _document(kind, run, piece, body, number)


def _split(text: str) -> Iterator[_Piece]:
    piece = _Piece(1)
    section_severity = ""
    in_fence = False
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if _FENCE.match(line):
            in_fence = not in_fence
        if in_fence or _FENCE.match(line):
            piece.lines.append(line)
            continue
        new = _start_of_piece(line, number, piece, section_severity)
        if new is not None:
            yield piece
            piece = new
            if new.heading and (heading := _HEADING.match(line)) and len(heading["level"]) <= _LEVEL_OF_SECTION:
                severity = _SEVERITY.search(new.heading)
                section_severity = f"P{severity[1]}" if severity else ""
        elif _CLOSING.search(line):
            yield piece
            piece = _Piece(number + 1)
        else:
            piece.lines.append(line)
    yield piece


def _start_of_piece(line: str, number: int, piece: _Piece, section_severity: str) -> _Piece | None:
    if marker := _MARKER.search(line):
        known = dict(_ATTRIBUTE.findall(marker["attributes"]))
        if not known and (positional := _POSITIONAL.fullmatch(marker["attributes"])):
            known = {"id": positional[1], "severity": positional[2].upper()}
        # Some writers put the title of a finding above its marker.
        above = piece.heading if _FINDING_HEADING.match(piece.heading) and not piece.has_text else ""
        return _marked(number, known, above)
    if resolved := _RESOLVED.search(line):
        return _marked(number, resolved.groupdict())
    is_first = piece.is_marked and not piece.has_text
    heading = _HEADING.match(line)
    if heading:
        # The first heading below a marker is the title of that finding.
        return None if is_first else _Piece(number, heading["text"])
    if (item := _ITEM.match(line)) and not piece.is_marked:
        found = _Piece(number, known={"id": item["id"], "severity": section_severity})
        found.lines.append(line)
        return found
    return None


def _marked(line: int, known: Mapping[str, str], heading: str = "") -> _Piece:
    piece = _Piece(line, heading, known)
    piece.is_marked = True
    return piece


def _document(kind: str, run: str, piece: _Piece, body: str, number: int) -> SearchDocument:
    identity, severity, title = piece.known.get("id", ""), piece.known.get("severity", ""), piece.heading
    lines = body.split("\n")
    first = _HEADING.match(lines[0])
    named = _ITEM.match(lines[0]) or _FINDING_HEADING.match(first["text"] if first else piece.heading)
    if named:
        identity = identity or named["id"]
        title = named["title"].strip()
        severity = severity or (named.groupdict().get("p") or "")
    elif first:
        title = first["text"]
    location = piece.known.get("file", "")
    if location and piece.known.get("line"):
        location = f"{location}:{piece.known['line']}"
    if not location and (place := _LOCATION.search(body)):
        location = place["path"]
    severity = severity.upper() if _SEVERITY.fullmatch(severity.upper()) else ""
    heading = title or lines[0].strip("# *-[]")[:_MAX_TITLE_LENGTH] or kind
    if identity:
        heading = f"{identity} ({severity}): {heading}" if severity else f"{identity}: {heading}"
    digest = hashlib.sha256(f"{run}\n{kind}\n{identity}\n{title}\n{number}".encode()).hexdigest()[:_ID_LENGTH]
    return SearchDocument(
        id=digest,
        kind=DocumentKind.ARTIFACT,
        title=heading,
        body=body,
        line=piece.line,
        role=f"arc-{kind}",
        category=kind,
        domain=run,
        source=piece.known.get("status", ""),
        citations=(location,) if location else (),
    )
