"""How much memory the largest jobs take at their peak, each in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.bench.figures import Figures, Row
from tests.bench.household import ResourceUsage
from tests.bench.made import findings, knowledge_file, large_file, memory_file
from tests.bench.workshop import open_job_runner, single_store
from tests.bench.workspace import Workspace
from tests.support import make_project, run_in_child

_ENTRIES = 2_500
_BLOCKS = 4_000
_LEARNINGS = 1_000


def measure(space: Workspace) -> Figures:
    """The peak of a worker that does nothing, and of jobs at the size where echod still reads the file."""
    jobs: dict[str, tuple[str, Callable[[], dict[str, bytes]], int]] = {
        f"consolidate {_LEARNINGS:,} findings into {_ENTRIES:,} entries": ("consolidate", _to_consolidate, 100_000),
        f"prune {_ENTRIES:,} entries": ("prune", lambda: {"MEMORY.md": large_file(_ENTRIES)}, 150),
        f"compress {_BLOCKS:,} entries": ("compress", lambda: {"knowledge.md": knowledge_file(_BLOCKS)}, 100_000),
    }
    rows = [Row("peak memory of a worker without work", _peak(space, "none", _nothing), "MiB")]
    for number, (what, (kind, files, limit)) in enumerate(jobs.items()):
        work = partial(_job, kind, files, limit)
        rows.append(Row(f"peak memory: {what}", _peak(space, f"job{number}", work), "MiB"))
    return Figures(tuple(rows))


def _to_consolidate() -> dict[str, bytes]:
    return {"MEMORY.md": memory_file(_ENTRIES)} | {file.name: file.data for file in findings(1, _LEARNINGS, 10)}


def _nothing(base: Path) -> None:
    with open_job_runner(base / "state"):
        pass


def _job(kind: str, files: Callable[[], dict[str, bytes]], limit: int, base: Path) -> None:
    store = single_store(make_project(base / "project", "reviewer"))
    if (
        run_in_child(partial(_write, store.root / "reviewer", files)) != 0
    ):  # making them must not count as the job's peak
        raise AssertionError("the files could not be written")
    with open_job_runner(base / "state", memory_line_limit=limit) as job_runner:
        job_runner.reconcile_store(store)
        job_runner.services.entries.release_first_prune(store.key, ["reviewer"])
        job_runner.run_until_job(store, kind)


def _write(role: Path, files: Callable[[], dict[str, bytes]]) -> None:
    for name, data in files().items():
        (role / name).write_bytes(data)


def _peak(space: Workspace, name: str, work: Callable[[Path], None]) -> float:
    """The peak in MiB of a process that does this work."""
    base, output = space.directory(name), space.disk / f"{name}.peak"

    def measured() -> None:
        Path("/proc/self/clear_refs").write_text("5")  # proc_pid_clear_refs(5): the peak is counted from here
        work(base)
        output.write_text(str(ResourceUsage.measure(os.getpid()).peak_mib))

    if run_in_child(measured) != 0:
        raise AssertionError(f"{name} failed")
    return float(output.read_text())
