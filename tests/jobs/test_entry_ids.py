"""Whatever happens to a memory file, references, pins and age stay with the words that they were counted for."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from echod.inspection.inspect import get_facts
from echod.memory.identity import entry_ids
from echod.memory.policy import plan_prune
from echod.memory.policy_model import PolicySettings
from echod.state.entries import Reference
from echod.store.commit.context import CommitStep
from tests.jobs.site import POLICY, Site, site_at_noon
from tests.life.files import MEMORY_HEADER, TODAY
from tests.support import run_in_child

KEY = "g" + "hp_" + "aB3dE5gH7" * 4
TIGHT = PolicySettings(memory_line_limit=18)
HOUR = 3600.0
_MARK = re.compile(r"Mark (\d+) ")


def marked_entry(number: int, title: str, *, layer: str = "inscribed", lines: int = 8) -> str:
    """An entry whose learning identifies it, even after its heading changed or it was condensed."""
    more = "".join(f"  And thing {n} of it.\n" for n in range(lines - 7))
    return (
        f"### [{TODAY}] Pattern: {title}\n- **layer**: {layer}\n- **source**: rune:review 7be10d44\n"
        f"- **confidence**: 0.8\n- **verified**: {TODAY}\n- Mark {number} was learnt.\n{more}\n"
    )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return site_at_noon(tmp_path)


def present_marks(site: Site) -> list[tuple[int, str]]:
    """Marks and ids of the entries that stand in the memory file."""
    pairs = zip(site.document.blocks, entry_ids(site.role.name, site.document), strict=True)
    return [(int(match[1]), i) for block, i in pairs if (match := _MARK.search(block.text)) and i]


def ids(site: Site) -> dict[int, str]:
    """Mark -> id of the entries that stand in the memory file."""
    return dict(present_marks(site))


def reference_counts(site: Site) -> dict[int, int]:
    """Mark -> references of the entries that stand in the memory file.

    An entry whose title was changed can stand there twice, if somebody overwrote the file at that moment: a new title
    makes a new entry. One of the two has them all.
    """
    histories = site.facts().histories
    found: dict[int, int] = {}
    for mark, identity in present_marks(site):
        references = histories[identity].references if identity in histories else 0
        found[mark] = max(found.get(mark, 0), references)
    return found


def add_references(site: Site, counts: dict[int, int]) -> None:
    """So many references to the entries with these marks."""
    site.record_entries()
    with site.entries() as entries:
        for mark, count in counts.items():
            named = [Reference(ids(site)[mark], f"session:{mark}-{n}") for n in range(count)]
            entries.add_references(site.role.store.key, named, site.today)


def pin(site: Site, mark: int) -> None:
    with site.entries() as entries:
        entries.pin(site.role.store.key, [ids(site)[mark]], site.today)


def test_a_repeat_that_is_pruned_leaves_its_id_and_keeps_what_was_known_of_it(site: Site) -> None:
    site.write(
        MEMORY_HEADER
        + marked_entry(1, "twice", lines=9)
        + marked_entry(2, "twice", lines=9)
        + marked_entry(3, "once", lines=9)
    )
    add_references(site, {1: 1, 2: 2, 3: 3})
    pin(site, 2)
    site.prune(policy=TIGHT)

    assert reference_counts(site) == {2: 2, 3: 3}
    assert site.facts().pinned.keys() & set(ids(site).values()) == {ids(site)[2]}
    site.undo(1, by=2, pinned=False)
    assert reference_counts(site) == {1: 1, 2: 2, 3: 3}
    assert site.facts().pinned.keys() & set(ids(site).values()) == {ids(site)[2]}


def test_of_two_that_say_the_same_the_one_that_stays_keeps_its_own(site: Site) -> None:
    site.write(MEMORY_HEADER + marked_entry(1, "twice", lines=14) + marked_entry(1, "twice", lines=14))
    site.record_entries()
    first, second = filter(None, entry_ids(site.role.name, site.document))
    with site.entries() as entries:
        entries.add_references(site.role.store.key, [Reference(second, "session:1")], site.today)
        entries.pin(site.role.store.key, [second], site.today)

    site.prune(policy=TIGHT)

    (left,) = filter(None, entry_ids(site.role.name, site.document))
    assert left == first
    assert (site.facts().histories[left].references, site.facts().pinned) == (1, {left: site.today})


def test_what_an_undo_brings_back_is_pinned_though_another_entry_had_its_id_meanwhile(site: Site) -> None:
    site.write(
        MEMORY_HEADER
        + marked_entry(1, "twice", lines=9)
        + marked_entry(2, "twice", lines=9)
        + marked_entry(3, "once", lines=9)
    )
    add_references(site, {2: 2, 3: 3})
    site.prune(policy=TIGHT)
    assert ids(site).keys() == {2, 3}

    site.undo(1, by=2)

    assert site.facts().pinned.keys() == set(ids(site).values())
    assert ids(site).keys() == {1, 2, 3}


@pytest.mark.parametrize("seen", [True, False], ids=["looked at afterwards", "not looked at"])
@pytest.mark.parametrize("change", ["a secret is taken out of the title", "the user corrects the title", "the date"])
def test_an_entry_with_another_id_is_the_same_to_the_next_prune(site: Site, change: str, *, seen: bool) -> None:
    site.write(
        MEMORY_HEADER
        + marked_entry(1, f"the token {KEY}", layer="traced", lines=20)
        + marked_entry(2, "other", lines=20)
    )
    add_references(site, {1: 4})
    pin(site, 1)
    before = ids(site)[1]

    if "secret" in change:
        site.scrub(1)
    else:
        old, new = (f"[{TODAY}]", "[2026-01-01]") if "date" in change else ("the token", "that token")
        site.role.memory.write_text(site.role.memory.read_text().replace(old, new, 1))
    if seen:
        site.record_entries()

    assert ids(site)[1] != before
    assert reference_counts(site)[1] == 4
    site.prune(policy=TIGHT, job=2)
    assert 1 in ids(site)  # traced entries go first, but not pinned ones
    assert reference_counts(site)[1] == 4


def test_a_repeated_finding_counts_for_an_entry_that_the_user_retitled(site: Site) -> None:
    site.write(MEMORY_HEADER + marked_entry(1, "teh lock") + marked_entry(2, "other"))
    add_references(site, {1: 2, 2: 1})
    site.role.memory.write_text(site.role.memory.read_text().replace("teh lock", "the lock"))
    (site.role.path / "ward-findings.md").write_text(marked_entry(1, "the lock"))

    site.consolidate()

    assert reference_counts(site) == {1: 3, 2: 1}


def test_an_overwrite_by_a_stale_writer_takes_nothing_away_for_good(site: Site) -> None:
    site.write(MEMORY_HEADER + marked_entry(1, "twice", layer="observations"))
    site.heal()
    stale = site.role.memory.read_text()
    site.write(
        MEMORY_HEADER
        + marked_entry(2, "twice")
        + marked_entry(1, "twice", layer="observations")
        + marked_entry(3, "once")
    )
    add_references(site, {1: 1, 2: 2, 3: 3})
    pin(site, 2)
    site.heal()
    site.now += 1

    site.role.memory.write_text(stale)
    site.record_entries()
    assert reference_counts(site) == {1: 1}
    site.write(
        MEMORY_HEADER
        + marked_entry(2, "twice")
        + marked_entry(1, "twice", layer="observations")
        + marked_entry(3, "once")
    )

    assert reference_counts(site) == {1: 1, 2: 2, 3: 3}
    assert ids(site)[2] in site.facts().pinned


@pytest.mark.parametrize("layer", ["observations", "inscribed"], ids=["archived", "condensed"])
def test_an_older_text_of_a_corrected_and_pruned_entry_is_the_same_entry(site: Site, layer: str) -> None:
    stale = MEMORY_HEADER + marked_entry(1, "teh lock", layer=layer, lines=20) + marked_entry(2, "other", lines=20)
    site.write(stale)
    add_references(site, {1: 2, 2: 3})
    site.role.memory.write_text(stale.replace("teh lock", "the lock"))
    site.record_entries()
    site.prune(policy=TIGHT)

    site.write(stale)

    assert reference_counts(site) == {1: 2, 2: 3}  # before the look is recorded
    site.record_entries()
    assert reference_counts(site) == {1: 2, 2: 3}


def test_killed_at_any_step_every_entry_that_is_left_keeps_what_was_known_of_it(tmp_path: Path) -> None:
    """The result is recorded after the commit. A kill in between must lose nothing."""

    def kill(at: int) -> Callable[[CommitStep], None]:
        left = iter(range(at))

        def trace(_: CommitStep) -> None:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        return trace

    killed = 0
    for at in range(1000):
        site = site_at_noon(tmp_path / str(at))
        site.write(
            MEMORY_HEADER
            + marked_entry(1, "twice", lines=9)
            + marked_entry(2, "twice", lines=20)
            + marked_entry(3, "once", lines=20)
        )
        add_references(site, {1: 1, 2: 2, 3: 3})

        code = run_in_child(partial(site.prune, policy=TIGHT, trace=kill(at)))
        site.heal()

        assert reference_counts(site) == {mark: mark for mark in ids(site)}
        site.prune(policy=TIGHT, job=2)
        assert reference_counts(site) == {mark: mark for mark in ids(site)}
        if code == 0:
            break
        killed += 1
    assert killed > 5


@dataclass
class History:
    """A memory file through a series of events, and the expected data of its entries.

    Two copies of an entry in one file are two entries to echod, because the file does not show whether somebody meant
    one or two. One of them has all references. When both have left and only the other one returns, it has none, and
    the references stay with the copy that is away. An observation that is rolled up passes a copy of its references on
    to the one that counts it, so references are told apart by their causes.
    """

    site: Site
    causes: dict[int, set[str]] = field(default_factory=dict)
    pruned: list[int] = field(default_factory=list)
    jobs: int = 0
    older_texts: list[str] = field(default_factory=list)
    copied: set[int] = field(default_factory=set)

    def write(self, text: str) -> None:
        """Another program than echod writes the file, just now."""
        self.site.role.memory.write_text(text)
        os.utime(self.site.role.memory, (self.site.now, self.site.now))

    def add(self, pick: int) -> None:
        """A writer appends an entry; some have the heading of another one that is there."""
        mark = len(self.causes) + 1
        layer = ("inscribed", "observations", "traced")[pick % 3]
        there = [block.entry.title for block in self.site.document.blocks if block.entry]
        title = there[pick % len(there)] if there and pick % 2 else f"title {mark} {KEY}"
        text = self.site.role.memory.read_text()
        self.write(text + marked_entry(mark, title, layer=layer, lines=8 if pick % 4 else 20))
        self.causes[mark] = {f"{mark}-{n}" for n in range(pick % 3)}
        add_references(self.site, {mark: pick % 3})

    def correct(self, pick: int) -> None:
        """The user corrects the title of an entry."""
        blocks = [block.text for block in self.site.document.blocks]
        if blocks:
            at = pick % len(blocks)
            blocks[at] = re.sub(r"Pattern: .*", f"Pattern: corrected {self.jobs} {pick}", blocks[at])
            self.write(self.site.document.preamble + "".join(blocks))
            self.site.record_entries()

    def remove(self, pick: int) -> None:
        """The user removes an entry, and moves the last one to the top."""
        blocks = [block.text for block in self.site.document.blocks]
        if len(blocks) > 2:
            del blocks[pick % len(blocks)]
            self.write(self.site.document.preamble + "".join([blocks[-1], *blocks[:-1]]))
            self.site.record_entries()

    def prune(self, _: int) -> None:
        self.jobs += 1
        marks = {identity: mark for mark, identity in present_marks(self.site)}
        with self.site.entries() as entries:
            facts = get_facts(self.site.role, entries, TIGHT, self.site.today, self.site.document)
        merged = plan_prune(self.site.role.name, self.site.document, facts, TIGHT, self.site.today).merged
        self.site.prune(policy=TIGHT, job=self.jobs)
        if any(done.job == self.jobs for done in self.site.engine().history()):
            self.pruned.append(self.jobs)
            for rolled_up, counted in merged.items():
                self.causes[marks[counted]] |= self.causes[marks[rolled_up]]

    def undo(self, _: int) -> None:
        if self.pruned:
            self.jobs += 1
            self.site.undo(self.pruned.pop(), by=self.jobs, pinned=False)
            self.site.record_entries()

    def scrub(self, _: int) -> None:
        self.jobs += 1
        self.site.scrub(self.jobs)

    def overwrite(self, pick: int) -> None:
        """A stale writer restores an earlier file, it is recorded, and the next job repairs it or not."""
        self.write(self.older_texts[pick % len(self.older_texts)])
        self.site.record_entries()
        self.site.heal()

    def check(self, event: str) -> None:
        found = reference_counts(self.site)
        elsewhere = {mark for mark in found.keys() & self.copied if found[mark] == 0}
        assert found == {mark: 0 if mark in elsewhere else len(self.causes[mark]) for mark in found}, event
        with self.site.entries() as entries:
            recorded = get_facts(self.site.role, entries, POLICY, self.site.today)
        assert sum(history.references for history in recorded.histories.values()) == sum(
            map(len, self.causes.values())
        ), event

    def advance(self) -> None:
        marks = Counter(mark for mark, _ in present_marks(self.site))
        self.copied |= {mark for mark, copies in marks.items() if copies > 1}
        self.older_texts.append(self.site.role.memory.read_text())
        self.site.now += HOUR


EVENTS = (
    History.add,
    History.add,
    History.prune,
    History.undo,
    History.correct,
    History.remove,
    History.scrub,
    History.overwrite,
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 59)), min_size=4, max_size=14))
@example([(History.add, 1), (History.add, 0), (History.correct, 0), (History.prune, 0), (History.overwrite, 1)])
@example(
    [
        (History.add, 0),
        (History.add, 0),
        (History.add, 1),
        (History.correct, 2),
        (History.prune, 0),
        (History.overwrite, 3),
    ]
)
@example(
    [
        (History.add, 0),
        (History.add, 0),
        (History.add, 1),
        (History.add, 0),
        (History.add, 0),
        (History.scrub, 0),
        (History.overwrite, 59),
        (History.add, 0),
        (History.overwrite, 0),
    ]
)
@example(
    [
        (History.add, 0),
        (History.add, 19),
        (History.scrub, 0),
        (History.add, 19),
        (History.add, 22),
        (History.remove, 0),
        (History.prune, 0),
    ]
)
def test_through_any_series_of_events_references_stay_with_their_entry(
    events: list[tuple[Callable[[History, int], None], int]],
) -> None:
    root = Path(tempfile.mkdtemp())
    story = History(site_at_noon(root))
    story.site.write(MEMORY_HEADER)
    story.advance()
    try:
        for event, pick in events:
            event(story, pick)
            story.check(event.__name__)
            story.advance()
    finally:
        shutil.rmtree(root)
