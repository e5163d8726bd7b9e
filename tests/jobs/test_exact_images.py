"""A secret that leaves a file leaves the journal within a week too, whichever job took it out; until then undo is exact."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from echod.jobs import forget
from echod.jobs import reset as resetting
from echod.memory.identity import entry_ids
from echod.memory.policy import Rule
from echod.store.changes import open_gate
from tests.jobs.site import POLICY, Site, at_noon
from tests.life.files import HEAD, learning, observation

TOKEN = "gh" + "p_aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
LINE = f"The deployment token is {TOKEN} until the rotation."
_DAY = 86_400.0


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return at_noon(tmp_path)


def told(entry: str) -> str:
    return entry.replace("What was learnt", f"{LINE} What was learnt")


def crowded() -> str:
    learnings = "".join(learning(f"learning {n}", "traced", age=n, lines=12) for n in range(12))
    return (
        HEAD
        + told(learning("the token", "traced", age=20))
        + learning("principle", "etched")
        + learnings
        + "".join(observation(f"task {n}", age=n) for n in range(9))
    )


def knowledge() -> str:
    long = [learning(f"valve {n}", "traced", age=n + 1, lines=12) for n in range(20)]
    return "# Knowledge\n\n" + told(long[0]) + "".join(long[1:])


def pruned(site: Site) -> None:
    site.write(crowded())
    site.prune(job=1)


def compressed(site: Site) -> None:
    site.write(HEAD + learning("principle"))
    (site.role.path / "knowledge.md").write_text(knowledge())
    os.utime(site.role.path / "knowledge.md", (site.now - 3600, site.now - 3600))
    site.compress(job=1, policy=replace(POLICY, knowledge_line_limit=100))


def forgotten(site: Site) -> None:
    site.write(HEAD + learning("principle") + told(learning("the token")))
    last = [identity for identity in entry_ids(site.role.name, site.document) if identity][-1]
    with site.engine().open_role(site.role) as session:
        forget.run(1, session, [last], open_gate, lambda: site.now, rule=Rule.FORGOTTEN)


def reset(site: Site) -> None:
    site.write(HEAD + learning("principle", "etched") + told(learning("the token")))
    with site.engine().open_role(site.role) as session:
        resetting.run(1, session, open_gate, lambda: site.now)


def scrubbed(site: Site) -> None:
    site.write(HEAD + told(learning("the token")))
    site.scrub(1)


def scrubbed_after_another_commit(site: Site) -> None:
    site.write(HEAD + told(learning("the token")))
    (site.role.path / "ward-findings.md").write_text(learning("valves"))
    site.consolidate(job=9)
    site.scrub(1)


def consolidated(site: Site) -> None:
    site.write(HEAD + learning("principle"))
    (site.role.path / "plain-findings.md").write_text(learning("valves"))
    (site.role.path / "ward-findings.md").write_text(told(learning("the token")))
    site.consolidate(job=1)


JOBS: list[Callable[[Site], None]] = [
    pruned, compressed, forgotten, reset, scrubbed, scrubbed_after_another_commit, consolidated,
]  # fmt: skip


def after(site: Site, days: int) -> None:
    """So many days later, tidied up on each."""
    for _ in range(days):
        site.now += _DAY
        engine = site.engine()
        engine.settle_debts(site.role.store)
        engine.retain()


def journal(site: Site) -> bytes:
    return b"".join(path.read_bytes() for path in (site.root / "state/journal").rglob("*") if path.is_file())


def visible(site: Site) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in site.role.path.glob("[!.]*.md")}


@pytest.mark.parametrize("job", JOBS)
def test_after_a_week_no_exact_image_holds_what_a_job_took_out(site: Site, job: Callable[[Site], None]) -> None:
    job(site)
    assert TOKEN.encode() in journal(site)

    after(site, 8)

    assert TOKEN.encode() not in journal(site)
    (undone,) = site.engine().undo(1, by=2)
    assert undone.redacted
    assert TOKEN.encode() not in b"".join(visible(site).values())


@pytest.mark.parametrize("job", JOBS)
def test_within_the_week_undo_brings_the_exact_text_back(site: Site, job: Callable[[Site], None]) -> None:
    job(site)
    assert TOKEN.encode() not in b"".join(visible(site).values())

    after(site, 6)
    (undone,) = site.engine().undo(1, by=2)

    assert not undone.redacted
    assert LINE.encode() in b"".join(visible(site).values())


def test_a_secret_that_nobody_asked_to_remove_stays_where_it_is_however_late_the_undo(site: Site) -> None:
    """The week ends for what was taken out, not for what an etched entry still says."""
    site.write(HEAD + told(learning("principle", "etched")))
    (site.role.path / "ward-findings.md").write_text(learning("valves").replace("What was", "password=Tr0ub4d0r! was"))
    before = site.role.memory.read_bytes()
    site.consolidate(job=1)
    assert b"[REDACTED:password]" in site.role.memory.read_bytes()

    after(site, 8)
    (undone,) = site.engine().undo(1, by=2)

    assert undone.redacted
    assert site.role.memory.read_bytes() == before
