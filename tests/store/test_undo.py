"""Everything a job did can be taken back, exactly if nothing else changed."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePosixPath

import pytest

from echod.memory.policy import Rule, read_archive
from echod.memory.policy.archive import ARCHIVE_LIMIT
from echod.store.changes import Append, ChangeSet, Origin, Write
from echod.store.errors import Refused
from echod.store.snapshot import digest
from tests.store.conftest import HEADER, Place, consolidation, entry

FIRST, SECOND, THIRD = entry("First"), entry("Second"), entry("Third")
BOTH = HEADER + FIRST + SECOND


def consolidate(place: Place, job: int = 1) -> None:
    with place.engine().open_role(place.role) as session:
        session.commit(job, consolidation(session.read()))


def prune(place: Place, job: int) -> None:
    """Archive the first entry."""
    with place.engine().open_role(place.role) as session:
        view = session.read()
        write = Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, view.memory.text.replace(FIRST, b""))
        kept = Append(PurePosixPath("reviewer/archive/pruned-2026.md"), FIRST)
        session.commit(job, ChangeSet("prune", "reviewer", "one entry", (write,), (kept,)))


def agents_files(place: Place) -> dict[str, bytes]:
    return {name: text for name, text in place.texts().items() if not name.startswith("archive/")}


def test_undo_restores_memory_and_findings_byte_for_byte(place: Place) -> None:
    place.findings("agent", THIRD)
    before = agents_files(place)
    consolidate(place)

    place.engine().undo(1, by=2)

    assert agents_files(place) == before


def test_undo_of_an_archiving_job_restores_the_memory_and_names_what_came_back(place: Place) -> None:
    prune(place, 1)

    (undone,) = place.engine().undo(1, by=2)

    assert place.memory.read_bytes() == BOTH
    assert [b.text.encode() for b in undone.restored] == [FIRST]


def test_undo_of_a_commit_that_created_the_memory_removes_it_and_keeps_its_text(place: Place) -> None:
    place.memory.unlink()
    place.findings("agent", THIRD)
    consolidate(place)

    place.engine().undo(1, by=2)

    assert agents_files(place) == {"agent-findings.md": THIRD}
    assert any(THIRD.strip() in text for text in place.texts().values())


def test_undo_merges_with_what_others_did_since(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    place.memory.write_bytes(place.memory.read_bytes() + entry("Fourth"))

    place.engine().undo(1, by=2)

    assert place.memory.read_bytes() == BOTH + entry("Fourth")


def test_undo_leaves_the_file_an_agent_has_written_anew(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    place.findings("agent", entry("New"))

    place.engine().undo(1, by=2)

    assert agents_files(place) == {
        "MEMORY.md": BOTH,
        "agent-findings.md": entry("New"),
        "agent-restored-1-findings.md": THIRD,
    }


def test_what_undo_takes_out_is_kept(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)

    place.engine().undo(1, by=2)

    (kept,) = read_archive(next(place.archive.glob("removed-*.md")).read_bytes()).entries
    assert kept.text.strip().encode() == THIRD.strip()
    assert (kept.rule, kept.file, kept.job) == (Rule.UNDONE, "MEMORY.md", 2)


def test_what_is_kept_begins_a_new_archive_once_one_is_full(place: Place) -> None:
    place.archive.mkdir()
    full = place.archive / f"removed-{datetime.fromtimestamp(place.clock()).astimezone().year}.md"
    full.write_bytes(b"x" * (ARCHIVE_LIMIT - 10))
    for number, title in enumerate(("Third", "Fourth")):
        place.findings("agent", entry(title))
        consolidate(place, 2 * number)

        place.engine().undo(2 * number, by=2 * number + 1)

        (place.role.path / "agent-findings.md").unlink()

    assert full.stat().st_size == ARCHIVE_LIMIT - 10
    kept = full.with_stem(f"{full.stem}-2").read_bytes()
    assert THIRD.strip() in kept
    assert entry("Fourth").strip() in kept
    assert len(list(place.archive.glob("removed-*"))) == 2


def test_undone_findings_are_unknown_again_and_marked(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)

    place.engine().undo(1, by=2)

    with place.engine().open_role(place.role) as session:
        view = session.read()
    assert view.known_keys == frozenset()
    assert view.undone == {digest(THIRD)}


def test_undo_can_be_undone(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    after = place.memory.read_bytes()
    place.engine().undo(1, by=2)

    place.engine().undo(2, by=3)

    assert agents_files(place) == {"MEMORY.md": after}


def test_nothing_is_put_back_after_an_undo_as_if_it_were_owed(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    place.engine().undo(1, by=2)

    with place.engine().open_role(place.role) as session:
        assert session.read().memory.text == BOTH


def test_jobs_undone_in_reverse_give_the_first_bytes(place: Place) -> None:
    place.findings("agent", THIRD)
    before = agents_files(place)
    consolidate(place, 1)
    prune(place, 2)
    place.findings("other", entry("Fourth"))
    consolidate(place, 3)

    for job in (3, 2, 1):
        place.engine().undo(job, by=job + 10)

    assert agents_files(place) == before | {"other-findings.md": entry("Fourth")}


@pytest.mark.parametrize(("days", "match"), [(0, "undone already"), (15, "older than")])
def test_undo_is_refused_with_a_reason(place: Place, days: int, match: str) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    if days == 0:
        place.engine().undo(1, by=2)
    place.now = days * 86_400.0

    with pytest.raises(Refused, match=match):
        place.engine().undo(1, by=3)


def test_undo_of_an_unknown_job_is_refused(place: Place) -> None:
    with pytest.raises(Refused, match="Job 7"):
        place.engine().undo(7, by=8)


def test_the_history_tells_what_was_done_and_undone(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    place.engine().undo(1, by=2)

    told = [(d.job, d.kind, d.undone_by) for d in place.engine().history([place.store])]

    assert told == [(2, "undo", None), (1, "consolidate", 2)]
    assert place.engine().highest_job() == 2


def test_undo_works_after_the_record_was_closed(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    place.now = 30 * 3600.0
    place.engine().settle_debts(place.store)
    place.engine().retain()

    place.engine().undo(1, by=2)

    assert place.memory.read_bytes() == BOTH


def close_all(place: Place, days: float) -> None:
    place.now = days * 86_400
    place.engine().settle_debts(place.store)
    place.engine().retain()


def test_contents_are_forgotten_after_the_days_of_undo(place: Place) -> None:
    for number, title in enumerate(("Third", "Fourth")):
        place.findings("agent", entry(title))
        consolidate(place, number)
    close_all(place, 1.5)
    kept = len(list(place.journal.rglob("images/*")))

    close_all(place, 15)

    assert kept > len(list(place.journal.rglob("images/*")))
    assert [d.job for d in place.engine().history()] == [1]


def test_findings_that_were_given_back_are_not_forgotten_with_the_undo(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    place.engine().undo(1, by=2)
    close_all(place, 1.5)
    place.findings("other", entry("Fourth"))
    with place.engine().open_role(place.role) as session:
        view = session.read()
        (left,) = view.undone
        write = Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, view.memory.text + entry("Fourth"))
        session.commit(3, ChangeSet("consolidate", "reviewer", "newer", (write,)))

    close_all(place, 20)
    close_all(place, 21)

    assert [done.job for done in place.engine().history()] == [3]
    assert place.engine().peek(place.role).undone == {left} == {digest(THIRD)}


def test_undoing_the_undo_takes_the_findings_again(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    after = place.memory.read_bytes()
    place.engine().undo(1, by=2)

    place.engine().undo(2, by=3)

    view = place.engine().peek(place.role)
    assert (view.memory.text, view.findings, view.undone) == (after, (), frozenset())


def test_a_memory_that_undo_took_away_is_not_taken_for_a_persons_deed(place: Place) -> None:
    place.memory.unlink()
    place.findings("agent", THIRD)
    consolidate(place)
    place.engine().undo(1, by=2)

    with place.engine().open_role(place.role) as session:
        session.read()

    assert place.engine().notes(place.store).reviews == ()
    assert [done.job for done in place.engine().history()] == [2, 1]


def test_undo_of_a_commit_that_created_the_memory_leaves_what_others_added_since(place: Place) -> None:
    place.memory.unlink()
    place.findings("agent", THIRD)
    consolidate(place)
    place.memory.write_bytes(place.memory.read_bytes() + FIRST)

    place.engine().undo(1, by=2)

    assert place.memory.read_bytes() == HEADER + FIRST


def test_a_preview_says_what_undo_will_do_and_does_nothing(place: Place) -> None:
    place.findings("agent", THIRD)
    consolidate(place)
    before = place.texts(), place.hidden()

    (preview,) = place.engine().preview_undo(1)

    assert (place.texts(), place.hidden()) == before
    assert (preview.returns, preview.goes, preview.exact) == (("reviewer/agent-findings.md",), (), True)
    assert [block.text.encode() for block in preview.leaving] == [THIRD]
    assert preview.restored == ()


def test_a_preview_says_that_the_memory_moved_on(place: Place) -> None:
    prune(place, 1)
    place.memory.write_bytes(place.memory.read_bytes() + THIRD)

    (preview,) = place.engine().preview_undo(1)

    assert not preview.exact
    assert [block.text.encode() for block in preview.restored] == [FIRST]
    assert preview.leaving == ()


def test_a_preview_is_refused_where_undo_would_be(place: Place) -> None:
    with pytest.raises(Refused, match="Job 7"):
        place.engine().preview_undo(7)


def test_an_exact_image_of_a_secret_is_gone_after_seven_days_and_undo_says_so(place: Place) -> None:
    secret = b"ghp_" + b"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    place.findings("agent", entry("Token", "Use " + secret.decode() + " for pushing."))
    with place.engine().open_role(place.role) as session:
        plan = consolidation(session.read())
        session.commit(1, _redacted(plan, secret))

    close_all(place, 8)
    (undone,) = place.engine().undo(1, by=2)

    assert undone.redacted
    assert not any(secret in path.read_bytes() for path in place.journal.rglob("*") if path.is_file())
    assert b"[REDACTED:" in (place.role.path / "agent-findings.md").read_bytes()


def _redacted(plan: ChangeSet, secret: bytes) -> ChangeSet:
    from dataclasses import replace

    from echod.memory.redact import redact

    def clean(data: bytes) -> bytes:
        return redact(data.decode()).text.encode()

    assert secret not in clean(secret)
    return replace(
        plan,
        writes=tuple(replace(w, after=clean(w.after)) for w in plan.writes),
        consumes=tuple(replace(c, kept=clean(c.kept)) for c in plan.consumes),
    )


def test_a_person_may_empty_a_memory_and_undo_it(place: Place) -> None:
    with place.engine().open_role(place.role) as session:
        view = session.read()
        write = Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, b"")
        kept = Append(PurePosixPath("reviewer/archive/removed-2026.md"), view.memory.text)
        session.commit(1, ChangeSet("reset", "reviewer", "reset", (write,), (kept,), origin=Origin.PERSON))
    emptied = place.memory.read_bytes()

    place.engine().undo(1, by=2)

    assert emptied == b""
    assert place.memory.read_bytes() == BOTH
