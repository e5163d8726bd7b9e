"""Run real processes that write the same files at once, with a service among them, and count the losses.

A lock that only the harness knows keeps the writers from destroying each other's work (without any service nothing is
lost), so every loss is the service's. The service never sees that lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from echod.store.errors import EngineLimits
from tests.torture.entries import count_entries, entry, with_own_entry
from tests.torture.service import StressProject, in_child, reconcile_once, run_naive_jobs

STORM_LIMITS = EngineLimits(displaced_hours=0.5 / 3600, settle_seconds=0.02)
_KEEP = 40
_MAX_COMMITS = 300
"""Several times the number of commits that any storm leaves to do."""
_STALL_SECONDS = 60.0
"""How long nothing at all may happen. Replaced files are followed for 1.8 s, and the machine may be busy."""
_INITIAL_NAMES = tuple(f"p{number:03d}" for number in range(80))


@dataclass
class StormResult:
    """The result of a storm.

    Attributes:
        left_to_user: entries that were overwritten again after they were restored three times; they are in
            `archive/removed-*.md`, and a review item reports them.
        archived_twice: entries that are in the archive more than once; allowed.
        in_both: entries that are in memory and archive; allowed.
    """

    acknowledged: int = 0
    lost: int = 0
    lost_findings: int = 0
    twice: int = 0
    torn: int = 0
    edits_lost: int = 0
    left_to_user: int = 0
    archived_twice: int = 0
    in_both: int = 0
    kills: int = 0
    crashes: int = 0
    names: list[str] = field(default_factory=list)

    def __add__(self, other: StormResult) -> StormResult:
        return StormResult(*(getattr(self, f) + getattr(other, f) for f in self.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class Storm:
    """The writers of a storm. `mix` has a letter for each writer, as in `_WRITERS`."""

    mix: str
    seconds: float
    seed: int
    kills: bool = False
    serialised: bool = True


Service = Callable[[StressProject], None]


def engine_service(project: StressProject) -> None:
    """Run the service under test, without pause."""
    engine = project.engine(STORM_LIMITS)
    engine.recover([project.store])
    while True:
        if not reconcile_once(project, engine, keep=_KEEP, batch=3):
            time.sleep(0.004)


def naive_service(project: StressProject) -> None:
    """Run a naive service: read, change, write aside, rename; unlink consumed files."""
    while True:
        if not run_naive_jobs(project, keep=_KEEP, batch=3):
            time.sleep(0.004)


def run_storm(
    base: Path, storm: Storm, service: Service | None, make: Callable[[Path], StressProject] = StressProject
) -> StormResult:
    """Run one storm and count the losses after the service has had time to finish alone."""
    shutil.rmtree(base, ignore_errors=True)
    project = make(base)
    project.create(*map(entry, _INITIAL_NAMES))
    rnd = random.Random(storm.seed)
    writers = [
        in_child(lambda i=i, kind=kind: _StormWriter(project, base, kind, i, storm).run())  # type: ignore[misc]
        for i, kind in enumerate(storm.mix)
    ]
    outcome = StormResult()
    serving = _start_service(project, service)
    try:
        while writers:
            time.sleep(rnd.uniform(0.02, 0.12))
            writers = [pid for pid in writers if not _has_exited(pid)]
            if serving and storm.kills:
                os.kill(serving, signal.SIGKILL)
                os.waitpid(serving, 0)
                outcome.kills += 1
                serving = _start_service(project, service)
            elif serving and _has_exited(serving):
                outcome.crashes += 1
                serving = _start_service(project, service)
    finally:
        if serving:
            os.kill(serving, signal.SIGKILL)
            os.waitpid(serving, 0)
    if service is engine_service:
        _run_until_idle(project)
    return _count_losses(project, base, outcome)


def _start_service(project: StressProject, service: Service | None) -> int:
    return in_child(lambda: service(project)) if service else 0


def _has_exited(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] != 0


def _run_until_idle(project: StressProject) -> None:
    """Let the service finish alone, however slow the machine is, as long as it makes progress.

    Without any other writer, each commit must produce a new state. Rules that undo each other's work would never end.
    """
    engine = project.engine(STORM_LIMITS)
    engine.recover([project.store])
    seen, hidden, waits_since = {_visible_digest(project)}, project.staged_files(), time.monotonic()
    while (
        (committed := reconcile_once(project, engine, keep=_KEEP, batch=3))
        or project.staged_files()
        or project.findings()
    ):
        if committed:
            digest = _visible_digest(project)
            assert digest not in seen, "the service repeats a state"
            seen.add(digest)
            assert len(seen) < _MAX_COMMITS, "the service never stops committing although it is alone"
        if committed or project.staged_files() != hidden:
            hidden, waits_since = project.staged_files(), time.monotonic()
        assert time.monotonic() - waits_since < _STALL_SECONDS, f"the service waits: {hidden} {project.findings()}"
        time.sleep(0.02)


def _visible_digest(project: StressProject) -> bytes:
    """Return a digest of the visible files of the role."""
    digest = hashlib.sha256()
    for path in sorted(p for p in project.role.path.rglob("*") if p.is_file() and not p.name.startswith(".")):
        digest.update(f"{path} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.digest()


def _count_losses(project: StressProject, base: Path, outcome: StormResult) -> StormResult:
    acknowledged = set(_INITIAL_NAMES)
    versions: dict[str, int] = {}
    for line in (base / "acknowledged").read_text().splitlines():
        name, _, version = line.partition(" ")
        if version:
            versions[name] = int(version)
        else:
            acknowledged.add(name)
    memory, archive, waiting = (
        count_entries([project.memory]),
        count_entries(project.archives()),
        count_entries(project.findings()),
    )
    removed = count_entries(project.role.path.glob("archive/removed-*.md"))
    outcome.acknowledged = len(acknowledged)
    for name in sorted(acknowledged):
        if not memory[name] and not archive[name] and not waiting[name]:
            outcome.names.append(name)
            if name.startswith("g"):
                outcome.lost_findings += 1
            else:
                outcome.lost += 1
        outcome.twice += memory[name] > 1
        outcome.left_to_user += bool(removed[name] and removed[name] == archive[name] and not memory[name])
        outcome.archived_twice += archive[name] > 1
        outcome.in_both += bool(memory[name] and archive[name])
    newest_versions = project.versions()
    outcome.torn = len(project.torn_entries()) + len(project.find_damage())
    outcome.edits_lost = sum(newest_versions.get(name, -1) < version for name, version in versions.items())
    return outcome


@dataclass
class _StormWriter:
    """One foreign program. It acknowledges an entry only once its own calls have returned."""

    arena: StressProject
    base: Path
    kind: str
    number: int
    storm: Storm

    def run(self) -> None:
        rnd = random.Random(self.storm.seed * 1000 + self.number)
        acknowledge = os.open(self.base / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        write = _WRITERS[self.kind]
        end, count = time.monotonic() + self.storm.seconds, 0
        while time.monotonic() < end:
            count += 1
            time.sleep(rnd.uniform(0, 0.03))
            for line in write(self, f"{self.kind}{self.number}_{count}", count, rnd):
                os.write(acknowledge, f"{line}\n".encode())

    @contextmanager
    def serialized(self, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
        """Serialize with the other writers, if the storm requires it."""
        if not self.storm.serialised:
            yield
            return
        with (self.base / "turns").open("a") as lock:
            fcntl.flock(lock, kind)
            yield

    def append(self, name: str, _count: int, _rnd: random.Random) -> Iterator[str]:
        with self.serialized():
            _append(self.arena.memory, entry(name))
        yield name

    def shell_append(self, name: str, _count: int, _rnd: random.Random) -> Iterator[str]:
        with self.serialized():
            command = ["sh", "-c", 'cat >> "$1"', "x", str(self.arena.memory)]
            subprocess.run(command, input=b"\n" + entry(name), check=True)
        yield name

    def hold(self, name: str, _count: int, rnd: random.Random) -> Iterator[str]:
        # Appends of several holders do not conflict. Rewriters must not run meanwhile.
        with self.serialized(fcntl.LOCK_SH):
            fd = os.open(self.arena.memory, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            for part in range(rnd.randint(1, 6)):
                time.sleep(rnd.uniform(0, 0.15))
                os.write(fd, b"\n" + entry(f"{name}_{part}"))
                yield f"{name}_{part}"
            os.close(fd)

    def replace(self, name: str, count: int, rnd: random.Random) -> Iterator[str]:
        with self.serialized():
            read = _read(self.arena.memory)
            time.sleep(rnd.uniform(0, 0.03))
            own = f"st{self.kind}{self.number}"
            aside = self.arena.memory.with_name(f".aside-{self.number}")
            aside.write_bytes(with_own_entry(read, own, count) + entry(name))
            aside.rename(self.arena.memory)
        yield name
        yield f"{own} {count}"

    def edit(self, name: str, count: int, rnd: random.Random) -> Iterator[str]:
        with self.serialized():
            read = _read(self.arena.memory)
            time.sleep(rnd.uniform(0, 0.03))
            own = f"st{self.kind}{self.number}"
            new = with_own_entry(read, own, count) + entry(name)
            fd = os.open(self.arena.memory, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            cut = rnd.randrange(len(new))
            os.write(fd, new[:cut])
            time.sleep(rnd.uniform(0, 0.02))
            os.write(fd, new[cut:])
            os.close(fd)
        yield name
        yield f"{own} {count}"

    def add_finding(self, name: str, _count: int, rnd: random.Random) -> Iterator[str]:
        path = self.arena.role.path / f"agent{self.number}-findings.md"
        if rnd.random() < 0.6:
            _append(path, entry(name))
        else:
            read = _read(path)
            time.sleep(rnd.uniform(0, 0.02))
            aside = path.with_name(f".aside-g{self.number}")
            aside.write_bytes(read + b"\n" + entry(name))
            aside.rename(path)
        yield name


_WRITERS: dict[str, Callable[[_StormWriter, str, int, random.Random], Iterator[str]]] = {
    "a": _StormWriter.append,
    "s": _StormWriter.shell_append,
    "h": _StormWriter.hold,
    "r": _StormWriter.replace,
    "e": _StormWriter.edit,
    "g": _StormWriter.add_finding,
}


def _append(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, b"\n" + data)
    finally:
        os.close(fd)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def table(rows: dict[str, StormResult]) -> str:
    """Return the results as a table."""
    columns = [name for name in StormResult.__dataclass_fields__ if name != "names"]
    lines = ["".join([f"{'storm':26}", *(f"{name.replace('_', ' '):>15}" for name in columns)])]
    lines += [
        "".join([f"{title:26}", *(f"{getattr(row, name):15}" for name in columns)]) for title, row in rows.items()
    ]
    return "\n".join(lines)


__all__ = ["Storm", "StormResult", "engine_service", "naive_service", "run_storm", "table"]
