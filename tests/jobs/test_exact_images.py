"""A secret that leaves a file leaves the journal within a week too, whichever job took it out; until then undo is exact."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from echod.jobs import manual
from echod.memory.identity import entry_ids
from echod.memory.policy_model import Rule
from tests.jobs.site import POLICY, Site, site_at_noon
from tests.life.files import MEMORY_HEADER, learning_text, observation_text

TOKEN = "gh" + "p_aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
LINE = f"The deployment token is {TOKEN} until the rotation."
_DAY = 86_400.0


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return site_at_noon(tmp_path)


def with_secret(entry: str) -> str:
    return entry.replace("What was learnt", f"{LINE} What was learnt")


def memory_with_secret() -> str:
    learnings = "".join(learning_text(f"learning {n}", "traced", age=n, lines=12) for n in range(12))
    return (
        MEMORY_HEADER
        + with_secret(learning_text("the token", "traced", age=20))
        + learning_text("principle", "etched")
        + learnings
        + "".join(observation_text(f"task {n}", age=n) for n in range(9))
    )


def knowledge_text() -> str:
    long = [learning_text(f"valve {n}", "traced", age=n + 1, lines=12) for n in range(20)]
    return "# Knowledge\n\n" + "".join(long[:-1]) + with_secret(long[-1])


def prune_job(site: Site) -> None:
    site.write(memory_with_secret())
    site.prune(job=1, policy=POLICY._replace(memory_line_limit=20))


def compress_job(site: Site) -> None:
    site.write(MEMORY_HEADER + learning_text("principle"))
    (site.role.path / "knowledge.md").write_text(knowledge_text())
    os.utime(site.role.path / "knowledge.md", (site.now - 3600, site.now - 3600))
    site.compress(job=1, policy=POLICY._replace(knowledge_line_limit=100))


def forget_job(site: Site) -> None:
    site.write(MEMORY_HEADER + learning_text("principle") + with_secret(learning_text("the token")))
    last = [identity for identity in entry_ids(site.role.name, site.document) if identity][-1]
    with site.entries() as entries, site.open_job(entries, 1) as context:
        manual.forget(context, [last], rule=Rule.FORGOTTEN)


def reset_job(site: Site) -> None:
    site.write(MEMORY_HEADER + learning_text("principle", "etched") + with_secret(learning_text("the token")))
    with site.entries() as entries, site.open_job(entries, 1) as context:
        manual.reset(context)


def scrub_job(site: Site) -> None:
    site.write(MEMORY_HEADER + with_secret(learning_text("the token")))
    site.scrub(1)


def scrub_after_another_commit(site: Site) -> None:
    site.write(MEMORY_HEADER + with_secret(learning_text("the token")))
    (site.role.path / "ward-findings.md").write_text(learning_text("valves"))
    site.consolidate(job=9)
    site.scrub(1)


def consolidate_job(site: Site) -> None:
    site.write(MEMORY_HEADER + learning_text("principle"))
    (site.role.path / "plain-findings.md").write_text(learning_text("valves"))
    (site.role.path / "ward-findings.md").write_text(with_secret(learning_text("the token")))
    site.consolidate(job=1)


JOBS: list[Callable[[Site], None]] = [
    prune_job, compress_job, forget_job, reset_job, scrub_job, scrub_after_another_commit, consolidate_job,
]  # fmt: skip


def advance_days(site: Site, days: int) -> None:
    """So many days later, tidied up on each."""
    for _ in range(days):
        site.now += _DAY
        engine = site.engine()
        engine.merge_late_writes(site.role.store)
        engine.apply_retention()


def journal_bytes(site: Site) -> bytes:
    return b"".join(path.read_bytes() for path in (site.root / "state/journal").rglob("*") if path.is_file())


def visible_contents(site: Site) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in site.role.path.glob("[!.]*.md")}


@pytest.mark.parametrize("job", JOBS)
def test_after_a_week_no_exact_image_holds_what_a_job_took_out(site: Site, job: Callable[[Site], None]) -> None:
    job(site)
    assert TOKEN.encode() in journal_bytes(site)

    advance_days(site, 8)

    assert TOKEN.encode() not in journal_bytes(site)
    (undone,) = site.engine().undo(1, by_job=2)
    assert undone.redacted
    assert TOKEN.encode() not in b"".join(visible_contents(site).values())


@pytest.mark.parametrize("days_ahead", [400, -400])
@pytest.mark.parametrize("job", [scrub_job, prune_job])
def test_the_week_is_over_too_if_the_clock_was_wrong_for_the_job(
    site: Site, job: Callable[[Site], None], days_ahead: int
) -> None:
    site.now += days_ahead * _DAY
    job(site)
    site.now -= days_ahead * _DAY

    advance_days(site, 9)  # the day of the first clean-up is the latest on which the job can have run

    assert TOKEN.encode() not in journal_bytes(site)


def test_a_clock_that_is_wrong_for_a_job_does_not_shorten_the_week(site: Site) -> None:
    site.now += 400 * _DAY
    scrub_job(site)
    site.now -= 400 * _DAY

    advance_days(site, 6)

    assert TOKEN.encode() in journal_bytes(site)


def test_a_secret_that_the_user_took_out_leaves_the_journal_too(site: Site) -> None:
    site.write(MEMORY_HEADER + with_secret(learning_text("the token")))
    site.heal()
    site.write(MEMORY_HEADER + learning_text("the token"))
    site.heal()
    assert TOKEN.encode() in journal_bytes(site)

    advance_days(site, 8)

    assert TOKEN.encode() not in journal_bytes(site)


@pytest.mark.parametrize("job", JOBS)
def test_within_the_week_undo_brings_the_exact_text_back(site: Site, job: Callable[[Site], None]) -> None:
    job(site)
    assert TOKEN.encode() not in b"".join(visible_contents(site).values())

    advance_days(site, 6)
    (undone,) = site.engine().undo(1, by_job=2)

    assert not undone.redacted
    assert LINE.encode() in b"".join(visible_contents(site).values())


def test_a_secret_outside_of_the_removal_stays_however_late_the_undo(site: Site) -> None:
    """The week ends for removed secrets, not for those that an etched entry still contains."""
    site.write(MEMORY_HEADER + with_secret(learning_text("principle", "etched")))
    (site.role.path / "ward-findings.md").write_text(
        learning_text("valves").replace("What was", "password=Tr0ub4d0r! was")
    )
    before = site.role.memory.read_bytes()
    site.consolidate(job=1)
    assert b"[REDACTED:password]" in site.role.memory.read_bytes()

    advance_days(site, 8)
    (undone,) = site.engine().undo(1, by_job=2)

    assert undone.redacted
    assert site.role.memory.read_bytes() == before
