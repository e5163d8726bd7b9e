"""Any sequence of jobs and foreign edits, then undo in reverse: the first bytes, and nothing lost on the way."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.document import parse
from echod.memory.model import Document
from echod.store.changes import Append, ChangeSet, Write
from echod.store.commit.commit import Committed
from echod.store.limits import EngineLimits
from tests.store.conftest import HEADER, Place, consolidation, entry

Job = Callable[[Place, int], None]


@contextmanager
def somewhere() -> Iterator[Place]:
    """A fresh project; hypothesis runs many times in one test, and so cannot take one from a fixture."""
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory).resolve() / "project"
        place = Place(project, project.with_name("journal"), EngineLimits(young_seconds=0.0))
        place.role.path.mkdir(parents=True)
        place.memory.write_bytes(HEADER + entry("First") + entry("Second") + entry("Third"))
        yield place


def consolidate(place: Place, job: int) -> None:
    place.findings(f"agent{job}", entry(f"Found {job}"), entry(f"Also {job}"))
    with place.engine().open_role(place.role) as session:
        assert isinstance(session.commit(job, consolidation(session.read())), Committed)


def archive_first(place: Place, job: int) -> None:
    _rewrite(place, job, lambda texts: texts[1:])


def archive_last(place: Place, job: int) -> None:
    _rewrite(place, job, lambda texts: texts[:-1])


def reorder(place: Place, job: int) -> None:
    _rewrite(place, job, lambda texts: texts[::-1])


def edit_metadata(place: Place, job: int) -> None:
    _rewrite(place, job, lambda texts: [texts[0].replace("`test`", f"`test`\n**Confidence**: {job}"), *texts[1:]])


JOBS: tuple[Job, ...] = (consolidate, archive_first, archive_last, reorder, edit_metadata)


def _rewrite(place: Place, job: int, change: Callable[[list[str]], list[str]]) -> None:
    with place.engine().open_role(place.role) as session:
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


def append(place: Place, number: int) -> None:
    with place.memory.open("ab") as file:
        file.write(entry(f"Foreign {number}"))


def retouch(place: Place, number: int) -> None:
    place.memory.write_bytes(place.memory.read_bytes().replace(b"Learned.", f"Learned {number}.".encode(), 1))


EDITS = (append, retouch)


def agents_files(place: Place) -> dict[str, bytes]:
    return {name: text for name, text in place.texts().items() if not name.startswith("archive/")}


@given(st.lists(st.sampled_from(JOBS), min_size=1, max_size=5))
@settings(max_examples=12, deadline=None)
def test_jobs_undone_in_reverse_give_the_first_bytes(jobs: list[Job]) -> None:
    with somewhere() as place:
        before = agents_files(place)
        for number, job in enumerate(jobs, 1):
            job(place, number)
        done = [d.job for d in place.engine().history([place.store])]

        for by, job_done in enumerate(done, 100):
            assert job_done is not None
            place.engine().undo(job_done, by=by)

        restored = agents_files(place)
        assert {n: t for n, t in restored.items() if not n.endswith("-findings.md")} == before


@given(st.lists(st.tuples(st.sampled_from((*JOBS, *EDITS)), st.booleans()), min_size=2, max_size=6))
@settings(max_examples=12, deadline=None)
def test_nothing_anyone_wrote_is_lost_by_jobs_edits_and_undos(steps: list[tuple[Job, bool]]) -> None:
    with somewhere() as place:
        written = {"First", "Second", "Third"}
        for number, (step, undone) in enumerate(steps, 1):
            step(place, number)
            written |= {f"Found {number}", f"Also {number}"} if step is consolidate else set()
            written |= {f"Foreign {number}"} if step is append else set()
            if undone and any(d.job == number for d in place.engine().history([place.store])):
                place.engine().undo(number, by=100 + number)
        place.engine().settle_debts(place.store)

        everything = b"".join(place.texts().values()).decode()
        assert [name for name in sorted(written) if f" {name} (" not in everything] == []
