"""Any sequence of jobs and foreign edits, then undo in reverse: the first bytes, and nothing lost on the way."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.document import parse
from echod.memory.model import Document
from echod.store.changes import Append, ChangeSet, CommitResult, Write
from echod.store.errors import EngineLimits
from tests.store.conftest import HEADER, Sandbox, entry, plan_consolidation

Job = Callable[[Sandbox, int], None]


@contextmanager
def open_sandbox() -> Iterator[Sandbox]:
    """Create a fresh project. Hypothesis runs many times in one test, and so cannot use a fixture."""
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory).resolve() / "project"
        sandbox = Sandbox(project, project.with_name("journal"), EngineLimits(young_seconds=0.0))
        sandbox.role.path.mkdir(parents=True)
        sandbox.memory.write_bytes(HEADER + entry("First") + entry("Second") + entry("Third"))
        yield sandbox


def consolidate(sandbox: Sandbox, job: int) -> None:
    sandbox.findings(f"agent{job}", entry(f"Found {job}"), entry(f"Also {job}"))
    with sandbox.engine().open_role(sandbox.role) as session:
        assert isinstance(session.commit(job, plan_consolidation(session.read())), CommitResult)


def archive_first(sandbox: Sandbox, job: int) -> None:
    _rewrite(sandbox, job, lambda texts: texts[1:])


def archive_last(sandbox: Sandbox, job: int) -> None:
    _rewrite(sandbox, job, lambda texts: texts[:-1])


def reorder(sandbox: Sandbox, job: int) -> None:
    _rewrite(sandbox, job, lambda texts: texts[::-1])


def edit_metadata(sandbox: Sandbox, job: int) -> None:
    _rewrite(sandbox, job, lambda texts: [texts[0].replace("`test`", f"`test`\n**Confidence**: {job}"), *texts[1:]])


JOBS: tuple[Job, ...] = (consolidate, archive_first, archive_last, reorder, edit_metadata)


def _rewrite(sandbox: Sandbox, job: int, change: Callable[[list[str]], list[str]]) -> None:
    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        document = parse(view.memory.text)
        assert isinstance(document, Document)
        before = [block.text for block in document.blocks]
        after = change(before) if len(before) > 1 else before
        role = PurePosixPath("reviewer")
        write = Write(role / "MEMORY.md", view.memory.digest, (document.preamble + "".join(after)).encode())
        gone = "".join(text for text in before if text not in after).encode()
        appends = (Append(role / "archive/pruned-2026.md", gone),) if gone else ()
        session.commit(job, ChangeSet("rewrite", "reviewer", "", (write,), appends))


def append(sandbox: Sandbox, number: int) -> None:
    with sandbox.memory.open("ab") as file:
        file.write(entry(f"Foreign {number}"))


def retouch(sandbox: Sandbox, number: int) -> None:
    sandbox.memory.write_bytes(sandbox.memory.read_bytes().replace(b"Learned.", f"Learned {number}.".encode(), 1))


EDITS = (append, retouch)


def agent_files(sandbox: Sandbox) -> dict[str, bytes]:
    return {name: text for name, text in sandbox.visible_files().items() if not name.startswith("archive/")}


@pytest.mark.slow
@given(st.lists(st.sampled_from(JOBS), min_size=1, max_size=5))
@settings(max_examples=12, deadline=None)
def test_jobs_undone_in_reverse_give_the_first_bytes(jobs: list[Job]) -> None:
    with open_sandbox() as sandbox:
        before = agent_files(sandbox)
        for number, job in enumerate(jobs, 1):
            job(sandbox, number)
        done = [d.job for d in sandbox.engine().history([sandbox.store])]

        for by, job_done in enumerate(done, 100):
            assert job_done is not None
            sandbox.engine().undo(job_done, by_job=by)

        restored = agent_files(sandbox)
        assert {n: t for n, t in restored.items() if not n.endswith("-findings.md")} == before


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from((*JOBS, *EDITS)), st.booleans()), min_size=2, max_size=6))
@settings(max_examples=12, deadline=None)
def test_nothing_anyone_wrote_is_lost_by_jobs_edits_and_undos(steps: list[tuple[Job, bool]]) -> None:
    with open_sandbox() as sandbox:
        written = {"First", "Second", "Third"}
        for number, (step, undone) in enumerate(steps, 1):
            step(sandbox, number)
            written |= {f"Found {number}", f"Also {number}"} if step is consolidate else set()
            written |= {f"Foreign {number}"} if step is append else set()
            if undone and any(d.job == number for d in sandbox.engine().history([sandbox.store])):
                sandbox.engine().undo(number, by_job=100 + number)
        sandbox.engine().merge_late_writes(sandbox.store)

        everything = b"".join(sandbox.visible_files().values()).decode()
        assert [name for name in sorted(written) if f" {name} (" not in everything] == []
