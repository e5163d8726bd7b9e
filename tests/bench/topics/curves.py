"""What work costs against how much there is: each a curve with its exponent, 1 for linear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from functools import partial
from statistics import median

from echod.memory.consolidation.plan import ConsolidationPlan, plan_consolidation
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.policy import Facts, plan_compress, plan_prune
from echod.memory.policy_model import PolicySettings
from tests.bench.figures import Curve, Figures
from tests.bench.made import DAY, findings, knowledge_file, large_file, memory_file
from tests.bench.reference import timed
from tests.bench.workshop import open_job_runner, single_store
from tests.bench.workspace import Workspace
from tests.support import finding_text, make_project

_ENTRIES = (1_250, 5_000, 20_000)
_PLANNED = (1_250, 2_500, 5_000)
_JOBS = (1_250, 2_500, 4_000)
"""A smaller file is kept as read from one step of a job to the next."""
_KNOWLEDGE = (500, 1_000, 2_000)
_FILES = (100, 1_000, 10_000)
_LEARNINGS = 50
_LATER = date(2026, 12, 31)


def measure(space: Workspace) -> Figures:
    """Plans, which compute, and jobs, which also read and commit."""
    return Figures(
        curves=(
            _curve("plan: consolidate 50 findings", "entries", _ENTRIES, _consolidation),
            _curve("plan: prune", "entries", _PLANNED, _prune),
            _curve("plan: compress", "entries", _KNOWLEDGE, _compress),
            _curve("job: consolidate 50 findings", "entries", _JOBS, partial(_consolidate_job, space)),
            _curve("job: prune", "entries", _JOBS, partial(_prune_job, space)),
            _curve("reconcile", "findings files", _FILES, partial(_reconcile, space)),
        )
    )


def _curve(what: str, of: str, sizes: Iterable[int], cost: Callable[[int], float]) -> Curve:
    return Curve(what, of, tuple((size, cost(size)) for size in sizes))


def _repeated(work: Callable[[], object], size: int) -> float:
    """The median of three runs; one of what takes seconds and is long enough to be steady."""
    return median(timed(work) for _ in range(3 if size <= _ENTRIES[0] else 1))


def _read(data: bytes) -> Document:
    document = parse(data)
    assert isinstance(document, Document)
    return document


def _consolidation(size: int) -> float:
    memory, files = memory_file(size), list(findings(1, _LEARNINGS, _LEARNINGS))

    def fold() -> None:
        assert isinstance(plan_consolidation("r", memory, files, DAY), ConsolidationPlan)

    return _repeated(fold, size)


def _prune(size: int) -> float:
    document = _read(large_file(observations=size))
    return _repeated(lambda: plan_prune("r", document, Facts(), PolicySettings(), _LATER), size)


def _compress(size: int) -> float:
    document = _read(knowledge_file(size))
    return _repeated(lambda: plan_compress("r", document, Facts(), PolicySettings(), _LATER), size)


def _consolidate_job(space: Workspace, size: int) -> float:
    files = {file.name: file.data for file in findings(1, _LEARNINGS, _LEARNINGS)}
    return _job(space, "consolidate", size, {"MEMORY.md": memory_file(size), **files}, 100_000)


def _prune_job(space: Workspace, size: int) -> float:
    return _job(space, "prune", size, {"MEMORY.md": large_file(observations=size)}, 150)


def _job(space: Workspace, kind: str, size: int, files: dict[str, bytes], limit: int) -> float:
    """From the look that finds the work to the job's last row, in a house of its own."""
    base = space.directory(f"{kind}{size}")
    store = single_store(make_project(base / "project", "reviewer"))
    for name, data in files.items():
        (store.root / "reviewer" / name).write_bytes(data)
    with open_job_runner(base / "state", memory_line_limit=limit) as services:
        services.reconcile_store(store)
        services.services.entries.release_first_prune(store.key, ["reviewer"])  # a first prune would wait for the user
        return timed(lambda: services.run_until_job(store, kind))


def _reconcile(space: Workspace, size: int) -> float:
    base = space.directory(f"reconcile{size}")
    store = single_store(make_project(base / "project", "reviewer", "workers"))
    for number in range(size):
        role = ("reviewer", "workers")[number % 2]
        (store.root / role / f"agent{number}-findings.md").write_text(finding_text(f"Learnt {number}"))
    with open_job_runner(base / "state") as services:
        services.reconcile_store(store)
        return _repeated(lambda: services.reconcile_store(store), size)
