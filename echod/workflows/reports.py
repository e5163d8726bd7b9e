"""Find the reports that workflows left behind in a project, and read them.

Only the places where the workflow plugins put reports are searched, each with a limit. Symbolic links are not
followed. `docs/ingest.md` lists the places.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import os_reason
from echod.files import read_regular
from echod.lazy import lazy_pattern
from echod.memory.reports.model import Report, ReportKind
from echod.memory.reports.reader import read_report

MAX_REPORTS: Final = 1_000
"""Files that are looked at in a project or a named directory, the newest first."""

MAX_REPORT_BYTES: Final = 5 * 1024 * 1024

_MAX_RUNS: Final = 500
_MAX_DEPTH: Final = 6
_MAX_INSCRIPTION_BYTES: Final = 1024 * 1024
_NONCE: Final = lazy_pattern(r"[A-Za-z0-9-]{4,64}")
_NAMES: Final = lazy_pattern(
    r"(?:tome(?:-[a-z0-9-]+)?\.md|resolution-report(?:-[a-z0-9-]+)?\.md|verdicts?\.md|verdicts\.json"
    r"|(?:gap-analysis|inspect)-verdict\.md|gap-analysis(?:-unified)?\.md|work-summary\.md"
    r"|(?:shard-[a-z]|cross-shard)-findings\.md)",
    re.IGNORECASE,
)
"""The names of reports, whatever their directory."""

_RUN_DIRECTORIES: Final = (
    "tmp/reviews", "tmp/audit", "tmp/arc", "tmp/mend", "tmp/verify", "tmp/inspect", "tmp/work", ".rune/arc-history",
)  # fmt: skip
_SUBDIRECTORIES: Final = ("", "reviews", "verify", "worker-logs")
_LOG_DIRECTORY: Final = "worker-logs"
_KIND_OF_PART: Final = {
    "audit": ReportKind.AUDIT, "reviews": ReportKind.REVIEW, "work": ReportKind.WORK, _LOG_DIRECTORY: ReportKind.WORK,
}  # fmt: skip


class ReportFile(NamedTuple):
    """A file that may be a report, and its modification time (Unix seconds)."""

    path: Path
    size: int
    inode: int
    modified: float


class ReadReport(NamedTuple):
    """A report that was read, and the digest of its content."""

    file: ReportFile
    digest: str
    report: Report


class UnreadableReport(NamedTuple):
    """A file that cannot be read as a report, and why, as a phrase."""

    path: Path
    reason: str


def find_reports(project: Path) -> tuple[ReportFile, ...]:
    """Return the reports of a project, the newest first.

    Raises:
        OSError: a directory that exists cannot be listed.
    """
    found = [file for place in _RUN_DIRECTORIES for file in _reports_of_runs(project, Path(place))]
    return _newest(found)


def find_reports_in(directory: Path) -> tuple[ReportFile, ...]:
    """Return the reports anywhere below a directory that the user named, the newest first.

    Raises:
        OSError: the directory cannot be listed.
    """
    return _newest(list(_walk(directory, _MAX_DEPTH)))


def report_file(path: Path) -> ReportFile:
    """Return a file that the user named. Raises OSError if there is no such regular file."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(2, "No such file", str(path))
    return ReportFile(path, status.st_size, status.st_ino, status.st_mtime)


def read_report_file(file: ReportFile) -> ReadReport | UnreadableReport:
    """Read a report. One that cannot be read has a reason, which is reported, and is not taken for empty."""
    if file.size > MAX_REPORT_BYTES:
        return UnreadableReport(file.path, f"it is larger than {MAX_REPORT_BYTES // 1024 // 1024} MiB")
    try:
        data = read_regular(file.path, MAX_REPORT_BYTES, follow_symlinks=False)
        text = data.decode()
    except UnicodeDecodeError:
        return UnreadableReport(file.path, "it is not UTF-8")
    except OSError as error:
        return UnreadableReport(file.path, f"it cannot be read: {os_reason(error)}")
    report = read_report(text, expected_nonce=_expected_nonce(file.path.parent), kind=kind_of_place(file.path))
    return ReadReport(file, hashlib.sha256(data).hexdigest(), report)


def kind_of_place(path: Path) -> ReportKind:
    """Return what the directories of a report say about its kind."""
    kinds = (_KIND_OF_PART[part] for part in reversed(path.parent.parts) if part in _KIND_OF_PART)
    return next(kinds, ReportKind.UNKNOWN)


def _reports_of_runs(project: Path, place: Path) -> Iterator[ReportFile]:
    directory = project
    for part in place.parts:
        directory /= part
        if directory.is_symlink():
            return
    for run in sorted(_directories(directory), key=lambda entry: entry.name, reverse=True)[:_MAX_RUNS]:
        for name in _SUBDIRECTORIES:
            yield from _reports_of_directory(Path(run.path) / name if name else Path(run.path))


def _reports_of_directory(directory: Path) -> Iterator[ReportFile]:
    is_log = directory.name == _LOG_DIRECTORY
    if directory.is_symlink():
        return
    for entry in _entries(directory):
        is_report = _NAMES.fullmatch(entry.name) or (is_log and entry.name.endswith(".md"))
        if is_report and entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            yield ReportFile(Path(entry.path), status.st_size, status.st_ino, status.st_mtime)


def _walk(directory: Path, depth: int) -> Iterator[ReportFile]:
    yield from _reports_of_directory(directory)
    if depth:
        for child in sorted(_directories(directory), key=lambda entry: entry.name)[:_MAX_RUNS]:
            yield from _walk(Path(child.path), depth - 1)


def _directories(directory: Path) -> Iterator[os.DirEntry[str]]:
    return (entry for entry in _entries(directory) if entry.is_dir(follow_symlinks=False))


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _newest(files: list[ReportFile]) -> tuple[ReportFile, ...]:
    # tome.md and TOME.md are one file on some file systems.
    unique = {file.inode: file for file in files}
    return tuple(sorted(unique.values(), key=lambda file: (-file.modified, str(file.path)))[:MAX_REPORTS])


def _expected_nonce(directory: Path) -> str:
    """Return the nonce that the run wrote beside its reports; "" if there is none."""
    try:
        fields = json.loads(read_regular(directory / "inscription.json", _MAX_INSCRIPTION_BYTES, follow_symlinks=False))
    except (OSError, ValueError, RecursionError):
        return ""
    nonce = fields.get("session_nonce") if isinstance(fields, dict) else None
    return nonce if isinstance(nonce, str) and _NONCE.fullmatch(nonce) else ""
