"""Change files of auto memory for the user, each change with a record, an undo, and a completion after a kill.

    {state}/auto-memory/changes/00000001.json   one change; `.intent.json` until it is done
    {state}/auto-memory/blobs/{digest}          the files before and after it

The agent and the host write the same files without a lock of echod's. So a file is replaced by an exchange of names,
and what was displaced is compared with what was planned from. If it differs, it is put back and nothing is changed. No
record and no blob is deleted: an index is small, and a removed line may be nowhere else.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from echod.errors import GARBLED_ERRORS, EchodError, os_reason
from echod.files import full_fsync, open_regular, read_regular, sync_directory, write_all, write_private_durable
from echod.lazy import lazy_pattern
from echod.paths import PRIVATE_FILE_MODE, make_private_directory
from echod.store.fs import OpenWriters, RenameUnsupportedError, exchange, open_dir, read_lease, rename_noreplace_or_link

MAX_FILE_BYTES: Final = 1 << 20
"""The size up to which a file of a memory is read."""

LOCK: Final = ".consolidate-lock"
LOCK_STALE_SECONDS: Final = 3_600.0
"""After this time the host itself ignores its lock."""

_MAX_LOCK_BYTES: Final = 64
_OWN_NAME = lazy_pattern(r"\..+\.[0-9a-f]{12}", re.DOTALL)
_INTENT: Final = ".intent.json"


class MemoryChangedError(EchodError):
    """A file is not what it was planned from, or may not be changed now. Nothing was changed."""


class ChangeRecordError(EchodError):
    """A record of a change cannot be read, or a change cannot be undone."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file, relative to the directory, with its digests before and after; None where it does not exist.

    `mtime_ns` is the time that the file gets; None for that of the change.
    """

    name: str
    before: str | None
    after: str | None
    mtime_ns: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One change of a directory. `at` is in Unix seconds; `undoes` and `undone_by` are numbers of records and jobs."""

    seq: int
    job: int
    kind: str
    at: float
    directory: str
    summary: str
    files: tuple[ChangedFile, ...] = ()
    undoes: int | None = None
    undone_by: int | None = None


@dataclass(frozen=True, slots=True)
class NewFile:
    """The content that a file gets. None deletes it. `mtime_ns` as in `ChangedFile`."""

    data: bytes | None
    before: bytes | None
    mtime_ns: int | None = None


def no_step(_: str) -> None:
    """Ignore a step of a change."""


class MemoryChanges:
    """The changes of auto memory. `trace` is called before each step, for tests that end the process there."""

    def __init__(self, root: Path, trace: Callable[[str], None] = no_step) -> None:
        self._records = root / "changes"
        self._blobs = root / "blobs"
        self._trace = trace

    def records(self) -> tuple[MemoryChange, ...]:
        """Return the changes that were made, the oldest first.

        Raises:
            ChangeRecordError: a record cannot be read.
        """
        return tuple(_read_record(path) for path in self._paths() if not path.name.endswith(_INTENT))

    def apply(
        self,
        directory: Path,
        files: Mapping[str, NewFile],
        *,
        job: int,
        kind: str,
        summary: str,
        now: float,
        undoes: int | None = None,
    ) -> MemoryChange:
        """Change files of a directory.

        Raises:
            MemoryChangedError: the host holds its lock, or a file is not as planned.
            OSError: the disk is full or fails. The change never began, or `recover` completes it.
        """  # fmt: skip
        if (reason := lock_reason(directory, now)) is not None:
            raise MemoryChangedError(f"{directory} is not changed, because {reason}. Try again later.")
        for name, new in files.items():
            _require(directory, name, _digest(new.before))
        changes = []
        for name, new in files.items():
            for data in (new.before, new.data):
                self._keep(data)
            changes.append(ChangedFile(name, _digest(new.before), _digest(new.data), new.mtime_ns))
        record = MemoryChange(self._next_seq(), job, kind, now, str(directory), summary, tuple(changes), undoes=undoes)
        self._trace("intent")
        self._write(record, _INTENT)
        try:
            self._finish(record)
        except MemoryChangedError:
            if not any(_present_digest(directory, change.name) == change.after for change in record.files):
                self._path(record, _INTENT).unlink()  # nothing was changed, so nothing is to be completed
                raise
            self._end(record)
            raise
        return record

    def recover(self) -> int:
        """Complete the changes that a kill interrupted, and return their number. A file changed since is left alone."""
        completed = 0
        for path in self._paths():
            if path.name.endswith(_INTENT):
                record = _read_record(path)
                with contextlib.suppress(MemoryChangedError, FileNotFoundError):
                    self._finish(record)
                for change in record.files:
                    target = Path(record.directory) / change.name
                    for leftover in target.parent.glob(f".{glob.escape(target.name)}.*"):
                        if _OWN_NAME.fullmatch(leftover.name):
                            _remove_leftover(leftover, change)
                with contextlib.suppress(FileNotFoundError):
                    self._end(record)
                completed += 1
        return completed

    def undo(self, record: MemoryChange, *, job: int, now: float) -> MemoryChange:
        """Reverse a change. Its files get their former bytes, and their former times where the order was changed.

        Raises:
            MemoryChangedError: a file was changed since.
            ChangeRecordError: it was undone already, or a former content is lost.
        """
        if record.undone_by is not None:
            raise ChangeRecordError(f"Job {record.job} was undone already, by job {record.undone_by}.")
        files = {
            change.name: NewFile(self.content(change.before), self.content(change.after), change.mtime_ns)
            for change in record.files
        }
        done = self.apply(
            Path(record.directory), files, job=job, kind="undo", summary=f"undid: {record.summary}", now=now,
            undoes=record.seq,
        )  # fmt: skip
        self._write(replace(record, undone_by=job), ".json")
        return done

    def _finish(self, record: MemoryChange) -> None:
        directory = Path(record.directory)
        for change in record.files:
            self._trace(change.name)
            if _present_digest(directory, change.name) != change.after:
                _replace(directory, change, self.content(change.after))
        self._trace("done")
        self._end(record)

    def _end(self, record: MemoryChange) -> None:
        source = self._path(record, _INTENT)
        if source.exists():
            source.rename(self._path(record, ".json"))
            sync_directory(self._records)

    def _keep(self, data: bytes | None) -> None:
        if data is not None and not (path := self._blobs / str(_digest(data))).exists():
            write_private_durable(path, data)

    def content(self, digest: str | None) -> bytes | None:
        """Return what a file was before or after a change; None where it did not exist.

        Raises:
            ChangeRecordError: it is lost or damaged.
        """
        if digest is None:
            return None
        try:
            data = read_regular(self._blobs / digest, MAX_FILE_BYTES)
        except OSError as error:
            raise ChangeRecordError(f"The former content is lost: {os_reason(error)}.") from error
        if _digest(data) != digest:
            raise ChangeRecordError(f"{self._blobs / digest} is damaged.")
        return data

    def _paths(self) -> list[Path]:
        try:
            return sorted(path for path in self._records.iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return []

    def _next_seq(self) -> int:
        return 1 + max((int(path.name.partition(".")[0]) for path in self._paths()), default=0)

    def _path(self, record: MemoryChange, suffix: str) -> Path:
        return self._records / f"{record.seq:08}{suffix}"

    def _write(self, record: MemoryChange, suffix: str) -> None:
        write_private_durable(self._path(record, suffix), json.dumps(asdict(record), ensure_ascii=False).encode())


def _read_record(path: Path) -> MemoryChange:
    try:
        raw: dict[str, Any] = json.loads(read_regular(path, MAX_FILE_BYTES))
        return MemoryChange(**{**raw, "files": tuple(ChangedFile(**change) for change in raw["files"])})
    except OSError as error:
        raise ChangeRecordError(f"{path} cannot be read: {os_reason(error)}.") from error
    except GARBLED_ERRORS as error:
        raise ChangeRecordError(f"{path} is damaged. Move it away; no memory depends on it.") from error


def _digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


def _present_digest(directory: Path, name: str) -> str | None:
    try:
        return _digest(read_regular(directory / name, MAX_FILE_BYTES, follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _require(directory: Path, name: str, digest: str | None) -> None:
    try:
        present = _present_digest(directory, name)
    except OSError as error:
        raise MemoryChangedError(f"{directory / name} cannot be read: {os_reason(error)}.") from error
    if present != digest:
        raise MemoryChangedError(f"{directory / name} was changed by another program in this moment. Try again.")


def _replace(directory: Path, change: ChangedFile, data: bytes | None) -> None:
    """Give a file its new content in one step, if it still has the old one.

    Raises:
        MemoryChangedError: it does not, or another program has it open for writing.
    """
    target = directory / change.name
    _require(directory, change.name, change.before)
    _refuse_open_writers(target)
    make_private_directory(target.parent)
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}")
    try:
        if data is not None:
            _write_beside(temporary, target, data, change.mtime_ns)
        with open_dir(target.parent, ()) as parent:
            if change.before is None:
                rename_noreplace_or_link(parent, temporary.name, parent, target.name)
            elif data is None:
                target.rename(temporary)
                _check_displaced(temporary, change, lambda: temporary.rename(target))
            else:
                try:
                    exchange(parent, temporary.name, parent, target.name)
                    _check_displaced(temporary, change, lambda: exchange(parent, temporary.name, parent, target.name))
                except RenameUnsupportedError:
                    _require(directory, change.name, change.before)
                    temporary.replace(target)
            parent.sync()
    except FileExistsError as error:
        raise MemoryChangedError(f"{target} was created by another program in this moment. Try again.") from error
    finally:
        _remove_leftover(temporary, change)


def _remove_leftover(path: Path, change: ChangedFile) -> None:
    """Remove a file of echod's own. One with a content that no record has stays, since it may be nowhere else."""
    with contextlib.suppress(OSError):
        if _digest(read_regular(path, MAX_FILE_BYTES, follow_symlinks=False)) in (change.before, change.after):
            path.unlink()


def _check_displaced(displaced: Path, change: ChangedFile, put_back: Callable[[], object]) -> None:
    present = _digest(read_regular(displaced, MAX_FILE_BYTES, follow_symlinks=False))
    if present not in (change.before, change.after):
        put_back()
        raise MemoryChangedError(f"{change.name} was changed by another program in this moment. Try again.")


def _refuse_open_writers(target: Path) -> None:
    try:
        with open_regular(target, follow_symlinks=False) as file, read_lease(file.fileno()) as writers:
            if writers is OpenWriters.SOME:
                raise MemoryChangedError(f"{target} is being written by another program. Try again.")
    except (FileNotFoundError, NotADirectoryError):
        return


def _write_beside(temporary: Path, target: Path, data: bytes, mtime_ns: int | None) -> None:
    try:
        mode = target.stat().st_mode & 0o777
    except FileNotFoundError:
        mode = PRIVATE_FILE_MODE
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        os.fchmod(descriptor, mode)
        write_all(descriptor, data)
        if mtime_ns is not None:
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        full_fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_reason(path: Path, now: float) -> str | None:
    """Return why the host's lock on a memory forbids changes, as half a sentence; None if it is free or stale.

    A lock of less than an hour that cannot be read counts as held. The time of its file is that of the host's last
    consolidation, so nothing of echod's touches it.
    """
    file = path / LOCK
    try:
        if now - file.lstat().st_mtime > LOCK_STALE_SECONDS:
            return None
        process = int(read_regular(file, _MAX_LOCK_BYTES, follow_symlinks=False).split()[0])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, IndexError):
        return f"its lock {LOCK} cannot be read"
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except PermissionError:
        pass  # it is alive, and another user's
    return f"Claude Code (process {process}) holds its lock {LOCK}" if process > 0 else None
