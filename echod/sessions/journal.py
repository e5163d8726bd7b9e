"""Change files beside the archives: as a whole, recorded before and after, and undone by the same means.

A change has steps, one for each file. Everything new is staged and synced, then the intent is recorded, and from there
on the change only moves forward: wherever a process is killed, `recover` completes it. Every step may be repeated.

    .echod/stage/{sha256}       new contents on their way
    .echod/blobs/{sha256}       contents that a change replaced, for undo
    .echod/journal/{number}.intent.json, renamed to {number}.json when all steps are done

Other programs may write the same files without a lock. A file that is not as a step was planned from is never
overwritten: the two index files are planned again from what is there, and for the others the change is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from echod.errors import os_reason
from echod.files import full_fsync, open_regular, read_regular, sync_directory, write_private_durable
from echod.log import get_logger
from echod.memory.conversation.index import INDEX_START, find_row, put_entry, remove_entry, remove_row
from echod.memory.conversation.model import archive_name
from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE
from echod.sessions.roots import EPHEMERAL, INDEX, SessionError, SessionRoot

log = get_logger(__name__)

UNDO_DAYS: Final = 14
_DAY_SECONDS: Final = 86_400.0
_CHUNK: Final = 1 << 20
_MAX_RECORD_BYTES: Final = 4 << 20
_INTENT_SUFFIX: Final = ".intent.json"

Tracer = Callable[[str], None]
"""Called before each step with its name, so that a test can kill the process there."""


class ChangedMeanwhileError(SessionError):
    """A file is not as the change was planned from. Nothing was overwritten."""


class FileStep(NamedTuple):
    """The change of one file. `path` is relative to the directory; a digest is None where there is no file."""

    path: str
    before: str | None
    after: str | None


class Staged(NamedTuple):
    """A file that was written and synced, to become the content of another one."""

    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class RootRecord:
    """A change, as it is recorded.

    Attributes:
        seq: its number in this directory, from 1.
        job: the number of its job; None for a repair.
        kind: what was done: archive, checkpoint, distill, rescue, undo, ...
        at: Unix seconds.
        archive: the number of the archive; None if it is about another file.
        session_id: the session; "" if it is about none.
        done: whether all steps are done.
        undone_by: the job that undid it.
        undoes: the `seq` of the change that this one undid.
        entry: the entry that it put into EPHEMERAL.md.
        row_before: the row of ARCHIVE.md that it replaced.
        undoable: false after `forget` deleted the contents that an undo needs.
    """

    seq: int
    job: int | None
    kind: str
    at: float
    summary: str
    steps: tuple[FileStep, ...]
    archive: int | None = None
    session_id: str = ""
    done: bool = False
    undone_by: int | None = None
    undoes: int | None = None
    entry: str = ""
    row_before: str | None = None
    undoable: bool = True


def ignore_step(step: str) -> None:
    """Trace nothing."""
    del step


class RootJournal:
    """The changes of one directory. The caller holds `SessionRoot.locked` for everything that writes."""

    def __init__(self, root: SessionRoot, *, trace: Tracer = ignore_step) -> None:
        self.root = root
        self._trace = trace
        self._journal = root.private / "journal"
        self._stage = root.private / "stage"
        self._blobs = root.private / "blobs"

    # Staging

    def stage_bytes(self, data: bytes) -> Staged:
        """Write and sync new content."""
        return self.stage_chunks([data])

    def stage_chunks(self, chunks: Iterable[bytes]) -> Staged:
        """Write and sync new content that comes in pieces."""
        self._stage.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
        temporary = self._stage / f".{os.urandom(8).hex()}"
        digest = sha256()
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            full_fsync(file.fileno())
        name = digest.hexdigest()
        temporary.replace(self._stage / name)
        return Staged(self._stage / name, name)

    # Committing

    def commit(self, record: RootRecord, contents: Mapping[str, Staged | None]) -> RootRecord:
        """Change files: to the staged content, or None to remove one. `record` gets its number and its steps here.

        Raises:
            ChangedMeanwhileError: a file that must be new exists. Nothing was changed.
            OSError: the disk is full or fails. The change is completed by `recover`, or never began.
        """
        self._journal.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
        steps = []
        for path, staged in contents.items():
            before = self._keep_before_image(path)
            steps.append(FileStep(path, before, None if staged is None else staged.digest))
        if self._stage.exists():
            sync_directory(self._stage)
        if self._blobs.exists():
            sync_directory(self._blobs)
        record = replace(record, seq=self._next_seq(), steps=tuple(step for step in steps if step.before != step.after))
        self._trace("intent")
        self._write(record)
        self._trace("intended")
        return self._finish(record, fresh=True)

    def recover(self) -> int:
        """Complete the changes that a kill interrupted, and remove what no change needs. Returns their number."""
        completed = 0
        for record in list(self._read(path for path in self._record_paths() if path.name.endswith(_INTENT_SUFFIX))):
            self._finish(record, fresh=False)
            completed += 1
        if self._stage.is_dir():
            for leftover in self._stage.iterdir():
                leftover.unlink(missing_ok=True)
        return completed

    def _finish(self, record: RootRecord, *, fresh: bool) -> RootRecord:
        directories: set[Path] = set()
        for step in record.steps:
            self._trace(step.path)
            directories.add((self.root.memory / step.path).parent)
            try:
                self._apply(step, record)
            except ChangedMeanwhileError:
                if fresh and step is record.steps[0]:
                    # Nothing was changed yet, so the change can still be given up.
                    self._path_of(record).unlink()
                    raise
                log.warning("session_file_kept", path=step.path, job=record.job)
        for directory in directories:
            if directory.is_dir():
                sync_directory(directory)
        self._trace("done")
        done = replace(record, done=True)
        # Not synced: should a power cut undo the rename, the steps are repeated, which changes nothing.
        self._path_of(record).rename(self._path_of(done))
        for step in record.steps:
            if step.after is not None:
                (self._stage / step.after).unlink(missing_ok=True)
        return done

    def _apply(self, step: FileStep, record: RootRecord) -> None:
        target = self.root.memory / step.path
        present = file_digest(target)
        if present == step.after:
            return
        if present != step.before:
            self._apply_again(step, record)
            return
        if step.after is None:
            target.unlink()
            return
        staged = self._stage / step.after
        if not staged.exists():
            return  # the step was done before a kill, and another program has changed the file back since
        target.parent.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
        if step.before is None:
            _create_exclusively(staged, target)
        else:
            staged.replace(target)

    def _apply_again(self, step: FileStep, record: RootRecord) -> None:
        """Make the change of an index file in what another program has written there meanwhile."""
        target = self.root.memory / step.path
        if step.path not in (INDEX, EPHEMERAL) or record.archive is None:
            raise ChangedMeanwhileError(f"{target} was changed by another program at the same moment. Try again.")
        present = self.root.read_text(step.path)
        staged = self._read_staged(step)
        name = archive_name(record.archive)
        if step.path == EPHEMERAL:
            entry = record.entry
            text = put_entry(present, entry, self.root.config().entries).text if entry else remove_entry(present, name)
        else:
            row = find_row(staged or "", record.archive)
            text = remove_row(present, record.archive)
            if row is not None:
                text = f"{text or INDEX_START}{'' if (text or INDEX_START).endswith(chr(10)) else chr(10)}{row}\n"
        write_private_durable(target, text.encode())

    def _read_staged(self, step: FileStep) -> str | None:
        try:
            return None if step.after is None else read_regular(self._stage / step.after, _MAX_RECORD_BYTES).decode()
        except FileNotFoundError:
            return None

    def _keep_before_image(self, path: str) -> str | None:
        target = self.root.memory / path
        digest = file_digest(target)
        if digest is not None and not (self._blobs / digest).exists():
            self._blobs.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
            _copy(target, self._blobs / digest)
        return digest

    # Records

    def records(self) -> tuple[RootRecord, ...]:
        """Return all changes, the oldest first.

        Raises:
            SessionError: a record cannot be read.
        """
        return tuple(self._read(self._record_paths()))

    def _read(self, paths: Iterable[Path]) -> Iterator[RootRecord]:
        for path in paths:
            try:
                values = json.loads(read_regular(path, _MAX_RECORD_BYTES, follow_symlinks=False))
                yield replace(_record_from_json(values), done=not path.name.endswith(_INTENT_SUFFIX))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error
            except (ValueError, KeyError, TypeError) as error:
                raise SessionError(f"{path} is damaged. Move it away; the archives do not depend on it.") from error

    def _record_paths(self) -> list[Path]:
        try:
            names = [path.name for path in self._journal.iterdir()]
        except FileNotFoundError:
            return []
        return [self._journal / name for name in sorted(names) if name.endswith(".json") and not name.startswith(".")]

    def _next_seq(self) -> int:
        paths = self._record_paths()
        return int(paths[-1].name.partition(".")[0]) + 1 if paths else 1

    def _path_of(self, record: RootRecord) -> Path:
        return self._journal / f"{record.seq:08}{'.json' if record.done else _INTENT_SUFFIX}"

    def _write(self, record: RootRecord) -> None:
        write_private_durable(self._path_of(record), json.dumps(asdict(record), ensure_ascii=False).encode())

    def count_lines(self, path: str, digest: str) -> int | None:
        """Return the lines of a content that a file has or had; None if it is not stored any more.

        Raises:
            OSError: the disk fails.
        """
        for stored in (self._blobs / digest, self.root.memory / path):
            if file_digest(stored) == digest:
                return sum(chunk.count(b"\n") for chunk in _chunks(stored))
        return None

    # Undo

    def undo(self, record: RootRecord, *, job: int, now: float) -> RootRecord:
        """Reverse a change. With nothing else changed it restores the bytes.

        Raises:
            SessionError: it cannot be undone any more; the text is the reason. Nothing was changed.
        """
        contents = self._reverse(record)
        reverse = RootRecord(
            0, job, "undo", now, f"undid: {record.summary}", (), record.archive, record.session_id, undoes=record.seq
        )
        done = self.commit(reverse, contents)
        self._write(replace(record, undone_by=job))
        return done

    def undo_problem(self, record: RootRecord, now: float) -> str | None:
        """Return why a change cannot be undone; None if it can."""
        if record.undone_by is not None:
            return f"Job {record.job} was undone already, by job {record.undone_by}."
        if not record.undoable:
            return f"Job {record.job} cannot be undone, because its conversation was forgotten since."
        if now - record.at > UNDO_DAYS * _DAY_SECONDS:
            return f"Job {record.job} is older than {UNDO_DAYS} days; it is too late to undo it."
        try:
            self._reverse(record, dry_run=True)
        except SessionError as error:
            return str(error)
        return None

    def _reverse(self, record: RootRecord, *, dry_run: bool = False) -> dict[str, Staged | None]:
        contents: dict[str, Staged | None] = {}
        for step in reversed(record.steps):
            target = self.root.memory / step.path
            if file_digest(target) == step.after:
                blob = None if step.before is None else self._blobs / step.before
                if blob is not None and file_digest(blob) != step.before:
                    raise SessionError(f"The earlier text of {step.path} is no longer kept, so nothing was changed.")
                contents[step.path] = None if blob is None or dry_run else self.stage_chunks(_chunks(blob))
            elif step.path in (INDEX, EPHEMERAL) and record.archive is not None:
                text = self._without_change(step, record)
                contents[step.path] = None if dry_run else self.stage_bytes(text.encode())
            else:
                raise SessionError(f"{target} was changed since. Undo that change first; nothing was changed.")
        return contents

    def _without_change(self, step: FileStep, record: RootRecord) -> str:
        present = self.root.read_text(step.path)
        number = record.archive or 0
        if step.path == EPHEMERAL:
            return remove_entry(present, archive_name(number))
        row = find_row(present, number)
        if record.row_before is not None and row is not None:
            return present.replace(row, record.row_before)
        return remove_row(present, number)

    # Retention

    def apply_retention(self, now: float) -> int:
        """Delete the contents that only an undo needs which is too late, and their records. Returns the freed bytes."""
        records = self.records()
        current = [record for record in records if now - record.at <= UNDO_DAYS * _DAY_SECONDS or not record.done]
        needed = {step.before for record in current for step in record.steps}
        freed = self.delete_blobs(keep=needed)
        # The newest record stays, so that no number is used twice.
        for record in records[:-1]:
            if record not in current:
                self._path_of(record).unlink(missing_ok=True)
        return freed

    def forget(self, session_id: str, archives: Iterable[int]) -> None:
        """Delete the earlier contents of a session's archives, so that no undo brings them back."""
        numbers = set(archives)
        records = self.records()
        for record in records:
            if record.archive in numbers or (session_id and record.session_id == session_id):
                summary = f"{record.kind} of a forgotten conversation"
                self._write(replace(record, undoable=False, summary=summary, entry="", row_before=None))
        private = {
            step.before
            for record in records
            for step in record.steps
            if record.archive in numbers or step.path == EPHEMERAL or record.session_id == session_id
        }
        shared = {step.before for record in records for step in record.steps} - private
        self.delete_blobs(keep=shared)

    def size(self) -> int:
        """Return the bytes that an undo of the changes here needs."""
        return sum(path.stat().st_size for path in self._private_files() if path.is_file())

    def purge(self) -> None:
        """Delete the records and all that an undo needs. The archives and their receipts stay.

        Raises:
            SessionError: a change cannot be completed first, or a file cannot be deleted.
        """
        if not self.root.private.is_dir():
            return
        with self.root.locked():
            self.recover()
            self.root.keep_number()
            for path in self._private_files():
                path.unlink(missing_ok=True)

    def _private_files(self) -> list[Path]:
        directories = (self._journal, self._stage, self._blobs)
        return [path for directory in directories if directory.is_dir() for path in directory.iterdir()]

    def delete_blobs(self, keep: set[str | None]) -> int:
        """Delete the kept contents except these, and return the freed bytes."""
        freed = 0
        with contextlib.suppress(FileNotFoundError):
            for blob in self._blobs.iterdir():
                if blob.name not in keep:
                    freed += blob.stat().st_size
                    blob.unlink(missing_ok=True)
        return freed


def _record_from_json(values: Mapping[str, Any]) -> RootRecord:
    steps = tuple(FileStep(*step) for step in values["steps"])
    return RootRecord(**{**values, "steps": steps})


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a regular file; None if it does not exist."""
    try:
        with open_regular(path, follow_symlinks=False) as file:
            digest = sha256()
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    with open_regular(path, follow_symlinks=False) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _copy(source: Path, target: Path) -> None:
    """Copy a file, synced. A copy, since a link would change with its target when an editor writes in place."""
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in _chunks(source):
                file.write(chunk)
            file.flush()
            full_fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _create_exclusively(staged: Path, target: Path) -> None:
    """Create a file with the staged content. Fails if it exists, so no number is given twice."""
    try:
        os.link(staged, target)
    except FileExistsError as error:
        raise ChangedMeanwhileError(f"{target} was created by another program at the same moment.") from error
    except OSError:
        # A file system without links. Between this look and the rename another program could create the file.
        if target.exists():
            raise ChangedMeanwhileError(f"{target} was created by another program at the same moment.") from None
        staged.replace(target)
        return
    staged.unlink(missing_ok=True)
