"""Disturbances beside a commit and beside a kill: git, a full disk, a wrong clock, links.

Each schedule runs the service in a child, disturbs it at one of its steps (or kills it there and disturbs then), lets
it finish alone, and returns the problems. Entries are acknowledged before the disturbance, so each one must be in the
memory, an archive or a findings file in the end.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from echod.errors import EchodError
from echod.store.commit.context import CommitStep, Tracer, no_trace
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from tests.torture.entries import count_entries, entry, is_whole, named_entries
from tests.torture.service import SHORT_LIMITS, StressProject, in_child, reconcile_once

Disturbance = Callable[[StressProject], None]

_KEEP_ALL = 1_000
_NAMES = ("w0", "w1", "w2")
_FINDINGS = ("f1", "f2")
_KILLED = 137
_DAY = 86_400.0


class Interruption:
    """A tracer that does something at one step, counted over all steps."""

    def __init__(self, at: int, action: Callable[[], None]) -> None:
        self._at, self._action, self.passed = at, action, 0

    def __call__(self, step: CommitStep, /) -> None:
        """Pass a step."""
        del step
        if self.passed == self._at:
            self._action()
        self.passed += 1


def create(base: Path, make: Callable[[Path], StressProject] = StressProject) -> StressProject:
    """Create a project with entries and with findings of one agent."""
    project = make(base)
    project.create(*map(entry, _NAMES))
    (project.role.path / "a-findings.md").write_bytes(b"".join(map(entry, _FINDINGS)))
    return project


def serve(project: StressProject, trace: Tracer = no_trace, clock: Callable[[], float] = time.time) -> None:
    """Run three turns of the service. A turn that cannot work, because of the disturbance, ends with its error."""
    engine = Engine(project.base / "journal", limits=SHORT_LIMITS, clock=clock, trace=trace)
    with suppress(EchodError):
        engine.recover([project.store])
    for _ in range(3):
        with suppress(EchodError, OSError):
            reconcile_once(project, engine, keep=_KEEP_ALL)


def count_steps(base: Path) -> int:
    """Count the steps that `serve` passes."""
    counter = Interruption(-1, lambda: None)
    project = create(base)
    serve(project, counter)
    shutil.rmtree(base)
    return counter.passed


def disturb(base: Path, at: int, disturbance: Disturbance, *, kill: bool, prepare: Disturbance) -> list[str]:
    """Run one schedule and return the problems in the end."""
    shutil.rmtree(base, ignore_errors=True)
    project = create(base)
    prepare(project)
    action = (lambda: os._exit(_KILLED)) if kill else (lambda: disturbance(project))
    child = in_child(lambda: serve(project, Interruption(at, action)))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    wrong = [] if status in (0, _KILLED) else [f"the service ended with {status}"]
    if kill:
        disturbance(project)
    for lock in (project.base / "project/tmp").glob(".rune-echo-lock-*"):
        os.utime(lock, (0, 0))
    for _ in range(4):
        serve(project)
    return wrong + find_problems(project, (*_NAMES, *_FINDINGS))


def find_problems(project: StressProject, expected: tuple[str, ...]) -> list[str]:
    """Return the entries that are lost, twice in the memory or torn, and files of echod's own that git would take."""
    kept = count_entries([*project.archives(), *project.findings(), *project.role.path.glob("archive/findings/*.md")])
    present = named_entries(project.memory.read_bytes()) if project.memory.exists() else ()
    names = [name for name, _ in present]
    wrong = [f"lost: {name}" for name in expected if name not in names and not kept[name]]
    wrong += [f"twice: {name}" for name in set(names) if names.count(name) > 1]
    wrong += [f"torn: {name}" for name, text in present if not is_whole(text)]
    exposed = [path for path in project.store.root.rglob(".*.echod-*") if path.parent.name != ".echod"]
    wrong += [f"exposed: {path.name}" for path in exposed]
    return wrong + [f"in git: {path}" for path in _tracked(project) if ".echod" in path]


def _tracked(project: StressProject) -> list[str]:
    if not (project.base / "project/.git").exists():
        return []
    command = ["git", "log", "--all", "--format=", "--name-only"]
    listed = subprocess.run(command, cwd=project.base / "project", capture_output=True, text=True, check=False)
    return listed.stdout.split()


def git(project: StressProject, *arguments: str) -> None:
    """Run git in the project. It fails where it has nothing to do, as a user's does."""
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    subprocess.run(command, cwd=project.base / "project", capture_output=True, check=False)


def make_repository(project: StressProject) -> None:
    """Track the memory and the findings, as a project that commits them does."""
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "base")


def _edit_and_remove_private(project: StressProject) -> None:
    shutil.rmtree(project.store.root / ".echod", ignore_errors=True)
    with project.memory.open("ab") as file:
        file.write(b"\n" + entry("w3"))


def _reuse_inodes(project: StressProject) -> None:
    """Remove the private directory and create files at once, which get the inode numbers that became free."""
    shutil.rmtree(project.store.root / ".echod", ignore_errors=True)
    for number in range(8):
        (project.role.path / f".other-{number}").write_bytes(b"x")
    aside = project.memory.with_name(".aside")
    aside.write_bytes(project.memory.read_bytes() + b"\n" + entry("w3"))
    aside.rename(project.memory)


def _stash_and_pop(project: StressProject) -> None:
    git(project, "stash", "-u")
    serve(project)
    git(project, "stash", "pop")


def _replace_worktree(project: StressProject) -> None:
    """Remove the whole work tree and check it out again: what is not in git is gone, and that is git's doing."""
    root = project.base / "project"
    shutil.rmtree(root / ".rune")
    git(project, "checkout", "-q", "--", ".")


def _commit_all(project: StressProject) -> None:
    git(project, "add", "-A")
    git(project, "commit", "-qm", "all")


GIT: dict[str, Disturbance] = {
    "clean": lambda project: git(project, "clean", "-fdxq"),
    "clean private": lambda project: git(project, "clean", "-fdxq", ".rune/echoes/.echod"),
    "checkout": lambda project: git(project, "checkout", "-q", "--", "."),
    "stash": lambda project: git(project, "stash", "-u"),
    "stash, pop": _stash_and_pop,
    "reset": lambda project: git(project, "reset", "-q", "--hard"),
    "commit all": _commit_all,
    "worktree": _replace_worktree,
    "clean, edit": _edit_and_remove_private,
    "inodes": _reuse_inodes,
}
"""Actions of git and of users, by name."""


def _outside(project: StressProject) -> Path:
    return project.base / "outside"


def prepare_links(project: StressProject) -> None:
    """Create a file outside of the project, which no commit may change."""
    _outside(project).mkdir()
    (_outside(project) / "file").write_bytes(b"outside\n")
    archive = project.role.path / "archive"
    archive.mkdir()
    os.link(_outside(project) / "file", archive / f"removed-{time.localtime().tm_year}.md")


def _link_private(project: StressProject) -> None:
    private = project.store.root / ".echod"
    with suppress(OSError):
        private.rename(project.store.root / ".aside")
    private.symlink_to(_outside(project))


def _link_archive(project: StressProject) -> None:
    archive = project.role.path / "archive"
    archive.rename(project.role.path / "archive-aside")
    archive.symlink_to(_outside(project))


def _link_memory(project: StressProject) -> None:
    os.link(project.memory, project.base / "other-name")


def _open_private(project: StressProject) -> None:
    private = project.store.root / ".echod"
    if private.exists():
        private.chmod(0o777)
        (private / ".gitignore").unlink(missing_ok=True)


LINKS: dict[str, Disturbance] = {
    "private is a link": _link_private,
    "archive is a link": _link_archive,
    "memory has two names": _link_memory,
    "private is open": _open_private,
}


def undo_links(project: StressProject) -> list[str]:
    """Check that nothing outside was changed, and put the directories back."""
    names = sorted(path.name for path in _outside(project).iterdir())
    wrong = [] if names == ["file"] else [f"written outside: {names}"]
    if (_outside(project) / "file").read_bytes() != b"outside\n":
        wrong.append("written through a hard link")
    for name, aside in ((".echod", ".aside"), ("reviewer/archive", "reviewer/archive-aside")):
        path = project.store.root / name
        if path.is_symlink():
            path.unlink()
            if (project.store.root / aside).exists():
                (project.store.root / aside).rename(path)
    return wrong


def disturb_links(base: Path, at: int, name: str, *, kill: bool) -> list[str]:
    """Run one schedule with links, and then without them."""
    wrong = disturb(base, at, LINKS[name], kill=kill, prepare=prepare_links)
    project = StressProject(base)
    found = undo_links(project)
    for _ in range(3):
        serve(project)
    problems = find_problems(project, (*_NAMES, *_FINDINGS))
    return [problem for problem in wrong if problem.startswith("the service ended")] + found + problems


def wrong_clocks(base: Path, seed: int) -> list[str]:
    """Run turns with clocks that are wrong now and then, and delete one entry by hand while no change is young."""
    rnd = random.Random(seed)
    shutil.rmtree(base, ignore_errors=True)
    project, now, offsets = create(base), time.time(), (400 * _DAY, 3_600.0, -3_600.0, -400 * _DAY)
    names = list(_NAMES)
    limits = EngineLimits(settle_seconds=0.02)
    for turn in range(8):
        now += 120.0
        offset = rnd.choice(offsets) if rnd.random() < 0.4 else 0.0
        name = f"c{turn}"
        (project.role.path / "a-findings.md").write_bytes(entry(name))
        engine = Engine(project.base / "journal", limits=limits, clock=lambda at=now + offset: at)  # type: ignore[misc]
        reconcile_once(project, engine, keep=_KEEP_ALL)
        names.append(name)
    now += 120.0
    settled = Engine(project.base / "journal", limits=limits, clock=lambda: now)
    reconcile_once(project, settled, keep=_KEEP_ALL)
    deleted = names.pop(rnd.randrange(len(names)))
    present = named_entries(project.memory.read_bytes())
    text = next(block for name, block in present if name == deleted)
    data = project.memory.read_bytes().replace(text.encode() + b"\n\n", b"")
    project.memory.write_bytes(data)
    now += 60.0
    reconcile_once(project, settled, keep=_KEEP_ALL)
    wrong = find_problems(project, tuple(names))
    if deleted in dict(named_entries(project.memory.read_bytes())):
        wrong.append("a deletion was reverted")
    now += 3 * _DAY
    settled.merge_late_writes(project.store)
    if project.staged_files():
        wrong.append(f"displaced files remain: {len(project.staged_files())}")
    return wrong


@contextmanager
def small_disk(mount: Path, size: str) -> Iterator[bool]:
    """Mount a small file system in memory, or yield False if that is not possible here."""
    mount.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def _fill(disk: Path, slack: int) -> Path:
    """Fill a disk up to about `slack` bytes, and return the file that does it."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    path = disk / ".fill"
    with suppress(OSError), path.open("wb", buffering=0) as file:
        left = free - slack
        while left > 0:
            left -= file.write(b"\0" * min(left, 65_536))
    return path


def full_disk(base: Path, full: str, seed: int) -> list[str]:
    """Run turns while the project's disk or the journal's is full in between, with kills. Returns the problems.

    Every entry is written and acknowledged while there is room, so that no loss is the writer's own.
    """
    rnd = random.Random(seed)
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    with small_disk(base / full, "1m") as mounted:
        if not mounted:
            return ["skipped"]
        project = create(base)
        names, steps = [*_NAMES, *_FINDINGS], 40
        serve(project)
        for turn in range(6):
            name = f"d{turn}"
            target = project.memory if rnd.random() < 0.5 else project.role.path / "b-findings.md"
            with target.open("ab") as file:
                file.write(b"\n" + entry(name))
            names.append(name)
            filler = _fill(base / full, rnd.choice((0, 0, 4_096, 8_192, 16_384, 32_768)))
            at = rnd.randrange(steps) if rnd.random() < 0.5 else -1
            os.waitpid(in_child(lambda at=at: serve(project, Interruption(at, lambda: os._exit(_KILLED)))), 0)  # type: ignore[misc]
            if rnd.random() < 0.3:
                os.waitpid(in_child(lambda: serve(project)), 0)
            filler.unlink(missing_ok=True)
            for lock in (project.base / "project/tmp").glob(".rune-echo-lock-*"):
                os.utime(lock, (0, 0))
            if rnd.random() < 0.5:
                serve(project)
        for _ in range(4):
            serve(project)
        wrong = find_problems(project, tuple(names))
        if project.findings():
            wrong.append("findings wait although there is room")
        return wrong
