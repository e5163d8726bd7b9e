"""The laws of prune, for any file, any history and any numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from echod.memory.archive import render_archived_entries
from echod.memory.conservation import FileChange, find_violations
from echod.memory.document import parse
from echod.memory.edit import learnings, split_body
from echod.memory.identity import BlockKey, block_key, entry_ids
from echod.memory.model import Block, Document, Layer
from echod.memory.policy import Facts, History, PrunePlan, plan_prune
from echod.memory.policy.draft import POINTER
from echod.memory.policy.scoring import count_document_lines, entry_statuses
from echod.memory.policy_model import PolicySettings, PruneAction, Rule
from echod.memory.redact import redact, redact_entry
from echod.memory.shorten import condense, without_list_marks
from tests.memory import strategies
from tests.memory.policy.samples import ROLE, TODAY, days_ago, entry, every_day, observation

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])

LAYERS_THAT_GO = (Layer.OBSERVATIONS, Layer.TRACED, Layer.INSCRIBED)
AGES = st.integers(0, 120)
LAYERS = st.sampled_from(["inscribed", "inscribed", "traced", "traced", "observations", "etched", "notes", "golden"])
TITLES = st.sampled_from(["retry", "lock", "cache", "pool", "queue", "index"])
ENTRIES = st.one_of(
    st.builds(
        entry,
        TITLES,
        LAYERS,
        age=AGES,
        confidence=st.sampled_from(["0.2", "0.9", None]),
        lines=st.sampled_from([8, 8, 16, 40]),
    ),
    st.builds(observation, TITLES, age=AGES),
)


@dataclass(frozen=True)
class Case:
    document: Document
    facts: Facts
    policy: PolicySettings


@st.composite
def cases(draw: DrawFn) -> Case:
    """A file of many entries (or any file at all), with histories, pins and limits."""
    texts = draw(
        st.one_of(
            st.lists(ENTRIES, max_size=25).map(lambda blocks: "\n".join(["# Memory\n", *blocks])),
            strategies.well_formed_files(),
            strategies.damaged_files(),
        )
    )
    document = parse(texts.encode())
    if not isinstance(document, Document):
        document = Document("", ())
    days = st.one_of(st.none(), AGES.map(days_ago), st.just(date(2036, 1, 1)))
    histories = st.builds(
        History, first_seen=days, last_reference=days, references=st.integers(0, 5), workflows=st.integers(0, 5)
    )
    ids = [identity for identity in entry_ids(ROLE, document) if identity]
    facts = Facts(
        histories={identity: draw(histories) for identity in ids if draw(st.booleans())},
        workflows_seen=draw(st.integers(0, 5)),
        alive_days=draw(st.sampled_from([frozenset(), every_day(200), every_day(20)])),
        pinned={identity: TODAY for identity in ids if draw(st.integers(0, 7)) == 0},
        learnings_archived_today=draw(st.sampled_from([0, 0, 1])),
    )
    return Case(document, facts, PolicySettings(memory_line_limit=draw(st.integers(0, 150))))


def plan_of(case: Case) -> PrunePlan:
    return plan_prune(ROLE, case.document, case.facts, case.policy, TODAY)


def result_of(case: Case, plan: PrunePlan) -> Document:
    if plan.memory is None:
        return case.document
    document = parse(plan.memory)
    assert isinstance(document, Document)
    return document


def parse_blocks(text: str) -> Sequence[Block]:
    document = parse(text.encode())
    assert isinstance(document, Document)
    return document.blocks


def redacted(text: str) -> Iterable[str]:
    yield redact(text).text
    yield redact_entry(text).text


def removed_titles(plan: PrunePlan, *layers: Layer) -> set[str]:
    """The entries of these layers that are no longer in the file."""
    left = {PruneAction.ARCHIVE, PruneAction.COMPRESS, PruneAction.ROLL_UP}
    return {action.id for action in plan.actions if action.action in left and action.layer in layers}


@QUICK
@given(cases())
def test_every_block_is_in_the_new_file_or_verbatim_in_the_archive(case: Case) -> None:
    plan = plan_of(case)

    after = result_of(case, plan)

    archived = render_archived_entries(plan.archived, 1).decode()
    assert (
        find_violations([FileChange(case.document, after)], [archived], redacted_forms=redacted, user_requested=True)
        == ()
    )
    moved = [action for action in plan.actions if action.rule is not None]
    assert [entry.id for entry in plan.archived] == [action.id for action in moved]
    assert plan.memory is None or plan.memory.strip()
    removed = sum(action.action is not PruneAction.CONDENSE for action in moved)
    summaries = sum("echod/roll-up" in block.text for block in after.blocks)
    assert len(case.document.blocks) - removed <= len(after.blocks) <= len(case.document.blocks) - removed + summaries


@QUICK
@given(cases())
def test_protected_and_pinned_bytes_never_change(case: Case) -> None:
    plan = plan_of(case)

    after = result_of(case, plan)

    touched = {action.id for action in plan.actions if action.rule is not None}
    ids = entry_ids(ROLE, case.document)
    untouchable = [
        block.text
        for block, identity in zip(case.document.blocks, ids, strict=True)
        if block.entry is None
        or block.entry.layer in {None, Layer.ETCHED, Layer.NOTES}
        or identity in case.facts.pinned
    ]
    remaining_texts = [block.text for block in after.blocks]
    rest = iter(remaining_texts)
    assert all(text in rest for text in untouchable)  # in their order, byte for byte
    assert touched.isdisjoint(case.facts.pinned)
    assert after.preamble.replace(POINTER, "").strip() == case.document.preamble.strip()


@QUICK
@given(cases())
def test_pruning_again_the_same_day_changes_nothing(case: Case) -> None:
    plan = plan_of(case)
    after = result_of(case, plan)
    names = {
        a.id: plan.id_changes.get(a.id, a.id) for a in plan.actions if a.id not in removed_titles(plan, *LAYERS_THAT_GO)
    }
    facts = replace(
        case.facts,
        histories={names[old]: history for old, history in case.facts.histories.items() if old in names},
        pinned={names[old]: until for old, until in case.facts.pinned.items() if old in names},
        learnings_archived_today=case.facts.learnings_archived_today + plan.learnings_archived,
    )

    again = plan_of(Case(after, facts, case.policy))

    keys = dict(zip(entry_ids(ROLE, after), map(block_key, after.blocks), strict=True))
    changed = {keys[action.id] for action in again.actions if action.rule is not None}
    assert (again.memory is None) == (not changed), again.summary
    # Of entries that only their texts distinguish, one that stays keeps its text until it is the only one.
    alone = keys_with_namesakes(case.document) - keys_with_namesakes(after)
    assert changed <= alone, again.summary


@QUICK
@given(cases())
def test_the_same_bytes_references_and_date_give_the_same_plan(case: Case) -> None:
    reordered = replace(
        case.facts,
        histories=dict(reversed(list(case.facts.histories.items()))),
        alive_days=frozenset(sorted(case.facts.alive_days)),
    )
    again = parse(case.document.render())
    assert isinstance(again, Document)

    assert plan_of(Case(again, reordered, case.policy)) == plan_of(case)


def keys_with_namesakes(document: Document) -> set[BlockKey]:
    return {key for key, number in Counter(map(block_key, document.blocks)).items() if number > 1}


@QUICK
@given(cases())
def test_a_file_within_its_limit_with_nothing_expired_is_untouched(case: Case) -> None:
    roomy = Case(case.document, case.facts, PolicySettings(memory_line_limit=count_document_lines(case.document)))

    plan = plan_of(roomy)

    assert {action.rule for action in plan.actions} <= {None, Rule.EXPIRED}
    assert {action.layer for action in plan.actions if action.rule} <= {Layer.OBSERVATIONS}
    if not any(action.rule for action in plan.actions):
        assert (plan.memory, plan.archived, plan.knowledge) == (None, (), ())


@QUICK
@given(cases())
def test_no_learning_leaves_while_noise_could(case: Case) -> None:
    plan = plan_of(case)

    if any(action.learnings for action in plan.actions):
        removable = [a for a in plan.actions if not a.is_protected and a.pinned_until is None]
        noise = [a for a in removable if a.layer in {Layer.OBSERVATIONS, Layer.TRACED}]
        old_ids = {new: old for old, new in plan.id_changes.items()}
        after = {old_ids.get(identity, identity) for identity in entry_ids(ROLE, result_of(case, plan)) if identity}
        statuses = entry_statuses(ROLE, case.document, case.facts, case.policy, TODAY)
        movable = {status.id for status in statuses if status.is_removable}
        assert not [action for action in noise if action.id in after and action.id in movable]


@QUICK
@given(cases())
def test_the_plan_counts_correctly(case: Case) -> None:
    plan = plan_of(case)

    after = result_of(case, plan)

    assert plan.lines_before == count_document_lines(case.document)
    assert plan.lines_after == count_document_lines(after)
    assert (plan.over_limit is None) == (plan.lines_after <= case.policy.memory_line_limit)
    if plan.over_limit:
        over = plan.over_limit
        assert (
            over.protected + over.pinned + over.best + over.deferred + over.not_removable
            == over.lines
            == plan.lines_after
        )
        assert min(over.protected, over.pinned, over.best, over.deferred, over.not_removable) >= 0


@QUICK
@given(cases(), st.integers(1, 400))
def test_no_wrong_clock_makes_prune_fail_or_lose_a_block(case: Case, years: int) -> None:
    for today in (TODAY + timedelta(days=365 * years), date(1970, 1, 1), date.max - timedelta(days=2)):
        plan = plan_prune(ROLE, case.document, case.facts, case.policy, today)
        after = result_of(case, plan)
        archived = render_archived_entries(plan.archived, None).decode()
        assert not find_violations(
            [FileChange(case.document, after)], [archived], redacted_forms=redacted, user_requested=True
        )


SIZES = st.lists(st.integers(0, 40), min_size=2, max_size=12)


def learning_with_code(number: int, lines: int) -> str:
    """An entry of one learning with a code block of this number of lines, which nothing shortens."""
    code = "".join(f"  line {line}\n" for line in range(lines))
    fence = f"  ```\n{code}  ```\n" if lines else ""
    return f"## Inscribed \u2014 Lesson {number} ({days_ago(60 + number)})\n- Word {number} of the lesson.\n{fence}\n"


def traced_with_code(number: int, lines: int) -> str:
    return learning_with_code(number, lines).replace("Inscribed", "Traced")


@QUICK
@given(SIZES, st.sampled_from([learning_with_code, traced_with_code]), st.integers(5, 200))
@example([13, 1, 1], traced_with_code, 27)
def test_nothing_leaves_that_need_not_have_left(sizes: list[int], form: Callable[[int, int], str], limit: int) -> None:
    texts = [form(number, lines) for number, lines in enumerate(sizes)]
    document = parse(("# Memory\n\n" + "".join(texts)).encode())
    assert isinstance(document, Document)
    policy = PolicySettings(memory_line_limit=limit, noise_share=0, daily_learning_share=1, memory_words=100_000)

    plan = plan_prune(ROLE, document, Facts(), policy, TODAY)

    room = limit - plan.lines_after
    left = [block.text for block, done in zip(document.blocks, plan.actions, strict=True) if done.rule is not None]
    gone = [text for text in left if text.rstrip() not in (plan.memory or b"").decode()]
    assert all(text.count("\n") > room for text in gone), "a text takes its blank line with it"


@QUICK
@given(strategies.entries())
def test_condensing_cuts_no_sentence(text: str) -> None:
    [block, *_] = parse_blocks(text)
    shorter = condense(block)

    if shorter is not None:
        before = "\n".join(part.text for part in learnings(split_body(block.body)))
        after = "\n".join(part.text for part in learnings(split_body(shorter.body)))
        assert without_list_marks(after) == without_list_marks(before)
