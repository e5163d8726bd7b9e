"""Every change of a job can be undone, exactly if nothing else has changed."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePosixPath

import pytest

from echod.files import content_digest
from echod.memory.archive import MAX_ARCHIVE_BYTES, read_archive
from echod.memory.policy_model import Rule
from echod.store.changes import Append, ChangeSet, Origin, Write
from echod.store.errors import RefusedError
from tests.store.conftest import HEADER, Sandbox, entry, plan_consolidation

FIRST, SECOND, THIRD = entry("First"), entry("Second"), entry("Third")
BOTH = HEADER + FIRST + SECOND


def consolidate(sandbox: Sandbox, job: int = 1) -> None:
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(job, plan_consolidation(session.read()))


def prune(sandbox: Sandbox, job: int) -> None:
    """Archive the first entry."""
    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        write = Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, view.memory.text.replace(FIRST, b""))
        kept = Append(PurePosixPath("reviewer/archive/pruned-2026.md"), FIRST)
        session.commit(job, ChangeSet("prune", "reviewer", "one entry", (write,), (kept,)))


def agent_files(sandbox: Sandbox) -> dict[str, bytes]:
    return {name: text for name, text in sandbox.visible_files().items() if not name.startswith("archive/")}


def test_undo_restores_memory_and_findings_byte_for_byte(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    before = agent_files(sandbox)
    consolidate(sandbox)

    sandbox.engine().undo(1, by_job=2)

    assert agent_files(sandbox) == before


def test_undo_of_an_archiving_job_restores_the_memory_and_names_the_restored_blocks(sandbox: Sandbox) -> None:
    prune(sandbox, 1)

    (undone,) = sandbox.engine().undo(1, by_job=2)

    assert sandbox.memory.read_bytes() == BOTH
    assert [b.text.encode() for b in undone.restored_blocks] == [FIRST]


def test_undo_of_a_commit_that_created_the_memory_removes_it_and_keeps_its_text(sandbox: Sandbox) -> None:
    sandbox.memory.unlink()
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)

    sandbox.engine().undo(1, by_job=2)

    assert agent_files(sandbox) == {"agent-findings.md": THIRD}
    assert any(THIRD.strip() in text for text in sandbox.visible_files().values())


def test_undo_merges_with_later_changes_of_other_programs(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    sandbox.memory.write_bytes(sandbox.memory.read_bytes() + entry("Fourth"))

    sandbox.engine().undo(1, by_job=2)

    assert sandbox.memory.read_bytes() == BOTH + entry("Fourth")


def test_undo_does_not_replace_a_new_file_of_the_agent(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    sandbox.findings("agent", entry("New"))

    sandbox.engine().undo(1, by_job=2)

    assert agent_files(sandbox) == {
        "MEMORY.md": BOTH,
        "agent-findings.md": entry("New"),
        "agent-restored-1-findings.md": THIRD,
    }


def test_text_removed_by_undo_is_archived(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)

    sandbox.engine().undo(1, by_job=2)

    (kept,) = read_archive(next(sandbox.archive.glob("removed-*.md")).read_bytes()).entries
    assert kept.text.strip().encode() == THIRD.strip()
    assert (kept.rule, kept.file, kept.job) == (Rule.UNDONE, "MEMORY.md", 2)


def test_removed_text_starts_a_new_archive_once_one_is_full(sandbox: Sandbox) -> None:
    sandbox.archive.mkdir()
    full = sandbox.archive / f"removed-{datetime.fromtimestamp(sandbox.clock()).astimezone().year}.md"
    full.write_bytes(b"x" * (MAX_ARCHIVE_BYTES - 10))
    for number, title in enumerate(("Third", "Fourth")):
        sandbox.findings("agent", entry(title))
        consolidate(sandbox, 2 * number)

        sandbox.engine().undo(2 * number, by_job=2 * number + 1)

        (sandbox.role.path / "agent-findings.md").unlink()

    assert full.stat().st_size == MAX_ARCHIVE_BYTES - 10
    kept = full.with_stem(f"{full.stem}-2").read_bytes()
    assert THIRD.strip() in kept
    assert entry("Fourth").strip() in kept
    assert len(list(sandbox.archive.glob("removed-*"))) == 2


def test_undone_findings_are_unknown_again_and_marked(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)

    sandbox.engine().undo(1, by_job=2)

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
    assert view.consumed_keys == frozenset()
    assert view.restored_findings == {content_digest(THIRD)}


def test_undo_can_be_undone(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    after = sandbox.memory.read_bytes()
    sandbox.engine().undo(1, by_job=2)

    sandbox.engine().undo(2, by_job=3)

    assert agent_files(sandbox) == {"MEMORY.md": after}


def test_undone_blocks_are_not_restored_as_if_they_were_overwritten(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    sandbox.engine().undo(1, by_job=2)

    with sandbox.engine().open_role(sandbox.role) as session:
        assert session.read().memory.text == BOTH


def test_jobs_undone_in_reverse_give_the_first_bytes(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    before = agent_files(sandbox)
    consolidate(sandbox, 1)
    prune(sandbox, 2)
    sandbox.findings("other", entry("Fourth"))
    consolidate(sandbox, 3)

    for job in (3, 2, 1):
        sandbox.engine().undo(job, by_job=job + 10)

    assert agent_files(sandbox) == before | {"other-findings.md": entry("Fourth")}


@pytest.mark.parametrize(("days", "match"), [(0, "undone already"), (15, "older than")])
def test_undo_is_refused_with_a_reason(sandbox: Sandbox, days: int, match: str) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    if days == 0:
        sandbox.engine().undo(1, by_job=2)
    sandbox.clock_offset = days * 86_400.0

    with pytest.raises(RefusedError, match=match):
        sandbox.engine().undo(1, by_job=3)


def test_undo_of_an_unknown_job_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(RefusedError, match="Job 7"):
        sandbox.engine().undo(7, by_job=8)


def test_the_history_shows_done_and_undone_jobs(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    sandbox.engine().undo(1, by_job=2)

    history = [(d.job, d.kind, d.undone_by) for d in sandbox.engine().history([sandbox.store])]

    assert history == [(2, "undo", None), (1, "consolidate", 2)]
    assert sandbox.engine().highest_job() == 2


def test_undo_works_after_the_record_was_closed(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    sandbox.clock_offset = 30 * 3600.0
    sandbox.engine().merge_late_writes(sandbox.store)
    sandbox.engine().apply_retention()

    sandbox.engine().undo(1, by_job=2)

    assert sandbox.memory.read_bytes() == BOTH


def close_all(sandbox: Sandbox, days: float) -> None:
    sandbox.clock_offset = days * 86_400
    sandbox.engine().merge_late_writes(sandbox.store)
    sandbox.engine().apply_retention()


def test_contents_are_forgotten_after_the_days_of_undo(sandbox: Sandbox) -> None:
    for number, title in enumerate(("Third", "Fourth")):
        sandbox.findings("agent", entry(title))
        consolidate(sandbox, number)
    close_all(sandbox, 1.5)
    kept = len(list(sandbox.journal.rglob("blobs/*")))

    close_all(sandbox, 15)

    assert kept > len(list(sandbox.journal.rglob("blobs/*")))
    assert [d.job for d in sandbox.engine().history()] == [1]


def test_restored_findings_are_remembered_after_the_undo_is_deleted(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    sandbox.engine().undo(1, by_job=2)
    close_all(sandbox, 1.5)
    sandbox.findings("other", entry("Fourth"))
    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        (left,) = view.restored_findings
        write = Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, view.memory.text + entry("Fourth"))
        session.commit(3, ChangeSet("consolidate", "reviewer", "newer", (write,)))

    close_all(sandbox, 20)
    close_all(sandbox, 21)

    assert [done.job for done in sandbox.engine().history()] == [3]
    assert sandbox.engine().read_role(sandbox.role).restored_findings == {left} == {content_digest(THIRD)}


def test_undoing_the_undo_consumes_the_findings_again(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    after = sandbox.memory.read_bytes()
    sandbox.engine().undo(1, by_job=2)

    sandbox.engine().undo(2, by_job=3)

    view = sandbox.engine().read_role(sandbox.role)
    assert (view.memory.text, view.findings, view.restored_findings) == (after, (), frozenset())


def test_a_memory_that_undo_removed_does_not_count_as_a_change_by_the_user(sandbox: Sandbox) -> None:
    sandbox.memory.unlink()
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    sandbox.engine().undo(1, by_job=2)

    with sandbox.engine().open_role(sandbox.role) as session:
        session.read()

    assert sandbox.engine().collect_notices(sandbox.store).notices == ()
    assert [done.job for done in sandbox.engine().history()] == [2, 1]


def test_undo_of_a_commit_that_created_the_memory_keeps_later_additions(sandbox: Sandbox) -> None:
    sandbox.memory.unlink()
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    sandbox.memory.write_bytes(sandbox.memory.read_bytes() + FIRST)

    sandbox.engine().undo(1, by_job=2)

    assert sandbox.memory.read_bytes() == HEADER + FIRST


def test_a_preview_shows_the_undo_and_changes_nothing(sandbox: Sandbox) -> None:
    sandbox.findings("agent", THIRD)
    consolidate(sandbox)
    before = sandbox.visible_files(), sandbox.hidden_names()

    (preview,) = sandbox.engine().preview_undo(1)

    assert (sandbox.visible_files(), sandbox.hidden_names()) == before
    assert (preview.restored_files, preview.removed_files, preview.exact) == (("reviewer/agent-findings.md",), (), True)
    assert [block.text.encode() for block in preview.removed_blocks] == [THIRD]
    assert preview.restored_blocks == ()


def test_a_preview_shows_that_the_memory_has_changed(sandbox: Sandbox) -> None:
    prune(sandbox, 1)
    sandbox.memory.write_bytes(sandbox.memory.read_bytes() + THIRD)

    (preview,) = sandbox.engine().preview_undo(1)

    assert not preview.exact
    assert [block.text.encode() for block in preview.restored_blocks] == [FIRST]
    assert preview.removed_blocks == ()


def test_a_preview_is_refused_where_undo_would_be(sandbox: Sandbox) -> None:
    with pytest.raises(RefusedError, match="Job 7"):
        sandbox.engine().preview_undo(7)


def test_an_exact_blob_of_a_secret_is_deleted_after_seven_days_and_undo_reports_it(sandbox: Sandbox) -> None:
    secret = b"ghp_" + b"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    sandbox.findings("agent", entry("Token", "Use " + secret.decode() + " for pushing."))
    with sandbox.engine().open_role(sandbox.role) as session:
        plan = plan_consolidation(session.read())
        session.commit(1, _redacted(plan, secret))

    close_all(sandbox, 8)
    (undone,) = sandbox.engine().undo(1, by_job=2)

    assert undone.redacted
    assert not any(secret in path.read_bytes() for path in sandbox.journal.rglob("*") if path.is_file())
    assert b"[REDACTED:" in (sandbox.role.path / "agent-findings.md").read_bytes()


def _redacted(plan: ChangeSet, secret: bytes) -> ChangeSet:

    from echod.memory.redact import redact

    def clean(data: bytes) -> bytes:
        return redact(data.decode()).text.encode()

    assert secret not in clean(secret)
    return plan._replace(
        writes=tuple(w._replace(after=clean(w.after)) for w in plan.writes),
        consumes=tuple(c._replace(archived_text=clean(c.archived_text)) for c in plan.consumes),
    )


def test_the_user_may_empty_a_memory_and_undo_it(sandbox: Sandbox) -> None:
    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        write = Write(PurePosixPath("reviewer/MEMORY.md"), view.memory.digest, b"")
        kept = Append(PurePosixPath("reviewer/archive/removed-2026.md"), view.memory.text)
        session.commit(1, ChangeSet("reset", "reviewer", "reset", (write,), (kept,), origin=Origin.USER))
    emptied = sandbox.memory.read_bytes()

    sandbox.engine().undo(1, by_job=2)

    assert emptied == b""
    assert sandbox.memory.read_bytes() == BOTH
