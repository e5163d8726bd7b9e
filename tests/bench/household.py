"""A user's machine: projects with memories, echod's own files where the platform puts them, a daemon to look at."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from echod.projects.registry import ProjectRegistry
from tests.bench.workspace import Workspace
from tests.support import Daemon, Home, finding_text, make_project, running_daemon, until

ROLES = ("planner", "workers", "reviewer", "auditor", "team", "orchestrator")
_LONG_AGO = 1_700_000_000.0
_LEARNINGS = 10
_START_SECONDS = 120
_IDLE_SECONDS, _MAX_IDLE_CPU_SECONDS = 2.0, 0.02


@dataclass(frozen=True)
class BenchHome(Home):
    """As on a user's machine: the runtime directory is in memory, and no variable names any directory."""

    @property
    def environ(self) -> dict[str, str]:
        """The environment of commands and daemon."""
        chosen = {name: value for name, value in super().environ.items() if not name.startswith(("ECHOD_", "XDG_"))}
        return {**chosen, "XDG_RUNTIME_DIR": str(self.root / "run"), **self.settings}

    @property
    def state(self) -> Path:
        """Where the platform puts the state."""
        return self.root / ".local/state/echod"

    @property
    def runtime(self) -> Path:
        """Heartbeat, canary, wake file, snapshot."""
        return self.root / "run/echod"


def make_bench_home(space: Workspace, projects: int, settings: Mapping[str, str] | None = None) -> BenchHome:
    """A home with so many registered projects of six roles, ten entries in each memory, all of them long at rest."""
    home = BenchHome(space.directory("home"), settings or {})
    (space.memory / "run").mkdir()
    (home.root / "run").symlink_to(space.memory / "run")
    home.state.mkdir(mode=0o700, parents=True)
    for number in range(projects):
        add_bench_project(home, space.disk / "projects" / f"p{number}")
    return home


def make_globbed_home(space: Workspace, projects: int) -> BenchHome:
    """Make the same home with a settings file whose only line names all projects by one glob; none is registered."""
    home = make_bench_home(space, 0)
    for number in range(projects):
        write_bench_project(space.disk / "projects" / f"p{number}")
    config = home.root / ".config/echod/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'projects = ["{space.disk}/projects/*"]\n')
    return home


def add_bench_project(home: BenchHome, root: Path) -> Path:
    """Make a project and register it."""
    root_directory = write_bench_project(root)
    ProjectRegistry(home.state / "projects").add(root_directory)
    return root_directory


def write_bench_project(root: Path) -> Path:
    """Make a project with six roles and their memories."""
    root_directory = make_project(root, *ROLES)
    (root_directory / "tmp").mkdir()
    for role in ROLES:
        entries = [finding_text(f"Lesson {n} of {role} in {root.name}") for n in range(_LEARNINGS)]
        memory = root_directory / f".rune/echoes/{role}/MEMORY.md"
        memory.write_text(f"# {role.title()} Memory\n\n" + "\n".join(entries))
        os.utime(memory, (_LONG_AGO, _LONG_AGO))  # a memory of just now would keep its gate from being idle
    return root_directory


def add_job_history(home: BenchHome, projects: Sequence[Path] | None = None) -> None:
    """Consolidate findings in each project, as on a machine in use: journals, archives, finished jobs."""
    projects = ProjectRegistry(home.state / "projects").roots() if projects is None else projects
    for root in projects:
        findings = root / f".rune/echoes/{ROLES[0]}/agent-findings.md"
        findings.write_text(finding_text(f"Found in {root.name}"))
        os.utime(findings, (_LONG_AGO, _LONG_AGO))
    home.run("run", "--once")
    if any(found for root in projects for found in root.glob(".rune/echoes/*/*-findings.md")):
        raise RuntimeError("findings were left over")


@dataclass(frozen=True)
class ResourceUsage:
    """What a process has used so far."""

    cpu_seconds: float
    memory_mib: float
    peak_mib: float
    threads: int
    descriptors: int
    written_bytes: int

    @classmethod
    def measure(cls, pid: int) -> ResourceUsage:
        """Look into /proc."""
        proc = Path(f"/proc/{pid}")
        status = dict(line.split(":", 1) for line in proc.joinpath("status").read_text().splitlines())
        io = dict(line.split(": ") for line in proc.joinpath("io").read_text().splitlines())
        return cls(
            cpu_seconds=time.clock_gettime(_cpu_clock(pid)),
            memory_mib=int(status["VmRSS"].split()[0]) / 1024,
            peak_mib=int(status["VmHWM"].split()[0]) / 1024,
            threads=int(status["Threads"]),
            descriptors=len(list(proc.joinpath("fd").iterdir())),
            written_bytes=int(io["write_bytes"]),
        )


def _cpu_clock(pid: int) -> int:
    """The clock that counts the nanoseconds of another process: clock_getcpuclockid(3) as Linux computes it."""
    return (~pid << 3) | 2


@contextmanager
def idle_daemon(home: BenchHome) -> Iterator[Daemon]:
    """A daemon whose first look at everything is over."""
    with running_daemon(home, _START_SECONDS) as running:
        wait_until_idle(running)
        yield running


def wait_until_idle(running: Daemon) -> None:
    """Wait for two seconds almost without work."""
    before = ResourceUsage.measure(running.process.pid).cpu_seconds

    def is_idle() -> bool:
        nonlocal before
        time.sleep(_IDLE_SECONDS)  # the span over which it is judged
        now = ResourceUsage.measure(running.process.pid).cpu_seconds
        calm, before = now - before <= _MAX_IDLE_CPU_SECONDS, now
        return calm

    until(is_idle, "the service to become idle", seconds=120)


def seconds_until(condition: Callable[[], bool], description: str, seconds: float) -> float:
    """How long it takes for a condition to hold, looked at every millisecond."""
    begin = time.perf_counter()
    while not condition():
        if time.perf_counter() - begin > seconds:
            raise TimeoutError(f"waited {seconds:g} s in vain for: {description}")
        time.sleep(0.001)
    return time.perf_counter() - begin
