"""Make a memory file fit into its limit, in steps that cost a future reader the least. Each stops when the file fits.

1. Layout: entries without content leave, and separators and needless blank lines.
2. Statistics: sections and tables of figures in inscribed entries.
3. Roll-up: similar observations and traced entries become one counted entry, with the most specific text.
4. Noise: the least specific observations and traced entries leave while they take more than their budget, which is
   the room that the rest of the file leaves, and a fifth of the limit at least.
5. Condense: inscribed entries keep heading, metadata and one line for each learning, whole. Blank lines between entries
   go last.
6. Learnings: once no noise is left that could leave, the least valuable learnings leave one by one, a fifth of them a
   day at most. The best stay in any case.

`prune` archives every entry that a step changes, as it was, and keeps the learnings of step 6 in the knowledge file.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from echod.memory.edit import with_recurrence
from echod.memory.forms import add_recurrences
from echod.memory.model import Form, Layer
from echod.memory.noise import (
    NoiseItem,
    NoiseJudge,
    compact_observation,
    group_noise,
    is_routine_summary,
    summarize_routine,
)
from echod.memory.policy.draft import PruneDraft
from echod.memory.policy.scoring import (
    NOISE_LAYERS,
    EntryStatus,
    Facts,
    allowed_in_knowledge,
    exact_fraction,
    noise_budget,
)
from echod.memory.policy_model import PruneAction, Rule
from echod.memory.shorten import (
    condense,
    entry_learnings,
    has_content,
    tidy_layout,
    without_gap,
    without_learnings,
    without_statistics,
)
from echod.memory.specificity import NameCounts

_MAX_LINES_OF_KIND = 2  # entries of one agent kind that are ranked before others wait
_LATER_OF_KIND = 0.5  # the share of its value with which a further one is ranked
_ALL_LAYERS = (Layer.OBSERVATIONS, Layer.TRACED, Layer.INSCRIBED)


def reduce_to_limit(draft: PruneDraft, facts: Facts, today: date) -> None:
    """Apply the steps to a file that is over its limit."""
    if not draft.is_over_limit():
        return
    _remove_empty(draft)
    _tidy_layouts(draft)
    if not draft.is_over_limit():
        return  # nothing left that a reader could look for
    draft.add_pointer()
    _remove_statistics(draft)
    _roll_up(draft)
    _remove_noise(draft, today)
    _condense(draft)
    _remove_remaining_noise(draft, today)
    _close_gaps(draft)
    _remove_learnings(draft, facts, today)


def _in_removal_order(statuses: Sequence[EntryStatus]) -> list[EntryStatus]:
    return sorted(statuses, key=lambda status: status.removal_order)


def _remove_empty(draft: PruneDraft) -> None:
    for status in _in_removal_order(draft.removable(_ALL_LAYERS)):
        if not draft.is_over_limit():
            return
        if status.entry.form is not Form.OBSERVATION and not has_content(draft.block(status.index)):
            draft.remove(status.index, Rule.EMPTY)


def _tidy_layouts(draft: PruneDraft) -> None:
    for status in _in_removal_order(draft.removable(_ALL_LAYERS)):
        if not draft.is_over_limit():
            return
        draft.replace(status.index, tidy_layout(draft.block(status.index)), Rule.LAYOUT)


def _remove_statistics(draft: PruneDraft) -> None:
    for status in _in_removal_order(draft.removable([Layer.INSCRIBED])):
        if not draft.is_over_limit():
            return
        draft.replace(status.index, without_statistics(draft.block(status.index)), Rule.STATISTICS)


# Noise


def _noise_items(draft: PruneDraft) -> list[NoiseItem]:
    return [
        NoiseItem(status.index, block, block.entry, status.verified)
        for status in draft.removable(NOISE_LAYERS)
        if (block := draft.block(status.index)).entry is not None
    ]


def _roll_up(draft: PruneDraft) -> None:
    """Roll up the routine first, then the largest groups, then single entries from the least telling on."""
    if not draft.is_over_limit():
        return
    items = _noise_items(draft)
    if not items:
        return
    judge = NoiseJudge(items)
    groups = group_noise(items, judge)
    routine = [group for group in groups if all(_is_routine(item, judge) for item in group)]
    rolled_up = _roll_up_routine(draft, [item for group in routine for item in group])
    remaining = [group for group in groups if not (rolled_up and group in routine)]
    for group in sorted(remaining, key=lambda group: (-len(group), judge.value(group[0]), group[0].index)):
        if not draft.is_over_limit():
            return
        _roll_up_group(draft, group, judge)


def _is_routine(item: NoiseItem, judge: NoiseJudge) -> bool:
    if item.entry.form is not Form.OBSERVATION or item.source_field is None:
        return False
    return is_routine_summary(item) or judge.specificity(item).is_routine


def _roll_up_routine(draft: PruneDraft, items: Sequence[NoiseItem]) -> bool:
    """Count tasks without specifics in one entry. False if they stay as they are."""
    summary = next((item for item in items if is_routine_summary(item)), None)
    others = [item for item in items if not is_routine_summary(item)]
    if len(items) < 2 or not others:  # noqa: PLR2004 - a pair
        return False
    kept = summary or others[0]
    block = summarize_routine(items, summary)
    leaving = [item.index for item in items]
    if block is None or not draft.replace(kept.index, block, Rule.ROLLED_UP, leaving):
        return False
    for item in others:
        draft.merge(item.index, kept.index)
    return True


def _roll_up_group(draft: PruneDraft, group: Sequence[NoiseItem], judge: NoiseJudge) -> None:
    if is_routine_summary(group[0]):
        return
    kept, *others = group
    block = compact_observation(kept, judge.context(kept)) or kept.block
    if others:
        total = add_recurrences([(item.workflow, item.recurrence) for item in group])
        counted = with_recurrence(block, total)
        if counted is None or counted.entry is None or counted.entry.source != kept.entry.source:
            return
        block = counted
    leaving = [item.index for item in others]
    if block is kept.block or not draft.replace(kept.index, block, Rule.ROLLED_UP, leaving):
        return
    for item in others:
        draft.merge(item.index, kept.index)


def _remove_noise(draft: PruneDraft, today: date) -> None:
    """Remove the lowest noise until the file fits in lines and words, or the noise fits into its budget."""
    if not draft.is_over_limit():
        return
    policy = draft.policy
    noise_lines, noise_words = draft.noise_size()
    line_budget = max(noise_budget(policy), policy.memory_line_limit - (draft.lines - noise_lines))
    word_budget = max(0, policy.word_limit - (draft.words - noise_words))
    _remove_lowest_noise(draft, today, noise_lines - line_budget, noise_words - word_budget)


def _remove_remaining_noise(draft: PruneDraft, today: date) -> None:
    """Remove the lowest noise until the file fits: no learning leaves to make room for it."""
    if draft.is_over_limit():
        _remove_lowest_noise(draft, today, draft.excess, 0)


def _remove_lowest_noise(draft: PruneDraft, today: date, lines: int, words: int) -> None:
    """Remove the lowest noise until so many lines and words are gone, and none that need not leave for that."""
    leaving: list[NoiseItem] = []
    for item in reversed(_ranked_noise(draft, today)):
        if lines <= 0 and words <= 0:
            break
        leaving.append(item)
        lines -= draft.lines_of(item.index)
        words -= draft.words_of(item.index)
    needed = []
    for item in reversed(leaving):  # the best of them first
        own_lines, own_words = draft.lines_of(item.index), draft.words_of(item.index)
        if lines + own_lines <= 0 and words + own_words <= 0:
            lines += own_lines
            words += own_words
        else:
            needed.append(item)
    for item in reversed(needed):
        _remove_noise_item(draft, item)


def _remove_noise_item(draft: PruneDraft, item: NoiseItem) -> None:
    keep = item.entry.layer is Layer.TRACED and allowed_in_knowledge(draft.statuses[item.index])
    draft.remove(item.index, Rule.NOISE_BUDGET, PruneAction.COMPRESS if keep else PruneAction.ARCHIVE)


def _ranked_noise(draft: PruneDraft, today: date) -> list[NoiseItem]:
    """Return the removable noise, the best first.

    Of one agent kind only the first entries have their full value. Today's noise has up to half of the budget for
    itself, while there is older noise. With all of it, every day would push out the most telling of the days before.
    """
    items = _noise_items(draft)
    if not items:
        return []
    judge = NoiseJudge(items)
    values = {item.index: judge.value(item) for item in items}
    kinds: Counter[tuple[object, ...]] = Counter()
    ranks = {}
    for item in sorted(items, key=lambda item: (-values[item.index], -item.day.toordinal(), -item.index)):
        kinds[item.entry.layer, item.agent_kind] += 1
        share = 1.0 if kinds[item.entry.layer, item.agent_kind] <= _MAX_LINES_OF_KIND else _LATER_OF_KIND
        ranks[item.index] = math.inf if is_routine_summary(item) else values[item.index] * share
    ranked = sorted(items, key=lambda item: (-ranks[item.index], -item.day.toordinal(), -item.index))
    new = [item for item in ranked if item.day >= today]
    if len(new) == len(items):
        return ranked
    room = noise_budget(draft.policy) / 2
    first: dict[int, NoiseItem] = {}
    for item in new:
        room -= draft.lines_of(item.index)
        if room < 0:
            break
        first[item.index] = item
    return [*first.values(), *(item for item in ranked if item.index not in first)]


# Learnings


def _condense(draft: PruneDraft) -> None:
    for status in _in_removal_order(draft.removable([Layer.INSCRIBED])):
        if not draft.is_over_limit():
            return
        draft.replace(status.index, condense(draft.block(status.index)), Rule.CONDENSED)


def _close_gaps(draft: PruneDraft) -> None:
    """Remove the blank lines between entries before a learning leaves for want of a line. Every block has a heading."""
    for status in _in_removal_order(draft.removable([Layer.INSCRIBED])):
        if not draft.is_over_limit():
            return
        draft.replace(status.index, without_gap(draft.block(status.index)), Rule.CONDENSED)


@dataclass(frozen=True, slots=True)
class _Learning:
    """A learning that may leave. They sort in the order of removal."""

    status: EntryStatus
    position: int  # among the learnings of its entry
    lines: int
    value: float  # in steps, so that small differences do not decide
    came_today: bool

    def __lt__(self, other: _Learning) -> bool:
        return self._order < other._order

    @property
    def _order(self) -> tuple[object, ...]:
        return (
            self.came_today,
            self.value,
            not self.status.evidence_gone,
            self.status.removal_order,
            self.position,
        )


def learning_values(draft: PruneDraft, facts: Facts) -> dict[int, tuple[float, ...]]:
    """Return the values of the learnings of all inscribed entries, by the position of the entry."""
    statuses = [s for s in draft.statuses.values() if s.layer is Layer.INSCRIBED and draft.contains(s.index)]
    texts = {status.index: entry_learnings(draft.block(status.index)) for status in statuses}
    names = NameCounts(text for learnings in texts.values() for text in learnings)
    return {
        status.index: tuple(names.judge(text).learning_value + _standing(status, facts) for text in texts[status.index])
        for status in statuses
    }


def _standing(status: EntryStatus, facts: Facts) -> float:
    """Return what an entry's use, its confirmation by other roles and its confidence add to its learnings."""
    relevance = status.terms.relevance if status.terms else 0.0
    confirmed = len(facts.confirmations.get(status.id, ()))
    return 4 * relevance + math.log2(1 + status.history.references) + 2 * min(confirmed, 3) + status.confidence


def learning_allowance(learnings: int, archived_today: int, share: float) -> int:
    """Return how many learnings of a file with this number of them may still leave today."""
    total = learnings + archived_today
    return max(0, max(1, math.floor(exact_fraction(share) * total)) - archived_today)


def _remove_learnings(draft: PruneDraft, facts: Facts, today: date) -> None:
    if not draft.is_over_limit():
        return
    values = learning_values(draft, facts)
    count = sum(max(1, len(of_entry)) for of_entry in values.values())
    allowance = learning_allowance(count, facts.learnings_archived_today, draft.policy.daily_learning_share)
    candidates = _learning_candidates(draft, values, today)
    queue = sorted(learning for of_entry in candidates.values() for learning in of_entry)
    left = {index: sum(learning.lines for learning in of_entry) for index, of_entry in candidates.items()}
    removed: defaultdict[int, list[int]] = defaultdict(list)
    excess, inscribed, floor = draft.excess, draft.inscribed_lines(), noise_budget(draft.policy)

    def freed(learning: _Learning) -> int:
        """Return the lines that its removal saves: with the last learning of an entry all that is left of it."""
        index, rest = learning.status.index, left[learning.status.index]
        return learning.lines if rest > learning.lines else draft.lines_of(index) - _taken(candidates[index], rest)

    start = 0
    taken: set[int] = set()
    while excess > 0 and allowance > 0 and start < len(queue):
        if start in taken:
            start += 1
            continue
        chosen = _best_fit(queue, start, taken, excess, freed)
        learning, lines = queue[chosen], freed(queue[chosen])
        taken.add(chosen)
        if inscribed - lines < floor:
            continue
        removed[learning.status.index].append(learning.position)
        left[learning.status.index] -= learning.lines
        excess, inscribed, allowance = excess - lines, inscribed - lines, allowance - 1
    _put_back_learnings(draft, candidates, removed, left, -excess)
    for index, positions in removed.items():
        if positions:
            _take_learnings(draft, index, sorted(positions), entry_left=not left[index])


def _put_back_learnings(
    draft: PruneDraft,
    candidates: Mapping[int, Sequence[_Learning]],
    removed: Mapping[int, list[int]],
    left: dict[int, int],
    room: int,
) -> None:
    """Keep the best of the removed learnings for which there is room: a larger one that left later made it."""
    leaving = [one for index, positions in removed.items() for one in candidates[index] if one.position in positions]
    for learning in sorted(leaving, reverse=True):
        index = learning.status.index
        lines = learning.lines
        if not left[index]:  # its heading returns with it
            lines = draft.lines_of(index) - _taken(candidates[index], learning.lines)
        if lines <= room:
            removed[index].remove(learning.position)
            left[index] += learning.lines
            room -= lines


def _taken(of_entry: Sequence[_Learning], rest: int) -> int:
    """Return the lines of the learnings of an entry that are taken already, when this many are left."""
    return sum(learning.lines for learning in of_entry) - rest


def _best_fit(
    queue: Sequence[_Learning], start: int, taken: Collection[int], excess: int, freed: Callable[[_Learning], int]
) -> int:
    """Return the place of the learning to leave next: of equal ones the first that frees no more than the excess."""
    first = queue[start]
    if freed(first) <= excess:
        return start
    end = start
    while end < len(queue) and queue[end].value == first.value and queue[end].came_today == first.came_today:
        end += 1
    equal = [place for place in range(start, end) if place not in taken]
    return min(equal, key=lambda place: (max(0, freed(queue[place]) - excess), place))


def _learning_candidates(
    draft: PruneDraft, values: dict[int, tuple[float, ...]], today: date
) -> dict[int, list[_Learning]]:
    candidates = {}
    for status in draft.removable([Layer.INSCRIBED]):
        first_seen = status.history.first_seen
        came_today = first_seen is None or first_seen >= today or status.verified >= today
        texts = entry_learnings(draft.block(status.index)) or ("",)
        of_entry = values[status.index] or (0.0,)
        if not draft.may_shorten(status.index):  # it leaves as a whole or not at all
            texts, of_entry = (draft.block(status.index).body,), (max(of_entry),)
        candidates[status.index] = [
            _Learning(status, position, text.count("\n") + 1, round(value, 1), came_today)
            for position, (text, value) in enumerate(zip(texts, of_entry, strict=True))
        ]
    return candidates


def _take_learnings(draft: PruneDraft, index: int, positions: list[int], *, entry_left: bool) -> None:
    status = draft.statuses[index]
    before = draft.block(index)
    change = draft.change(index, Rule.LOWEST_LEARNING)
    change.before_removal, change.removed_learnings = before, positions
    keep = allowed_in_knowledge(status)
    if entry_left and not draft.may_shorten(index):
        change.removed_learnings = list(range(len(entry_learnings(before))))
    if entry_left:
        draft.remove(index, Rule.LOWEST_LEARNING, PruneAction.COMPRESS if keep else PruneAction.ARCHIVE)
        return
    block = without_learnings(before, positions)
    if block is None:  # it would not read back as the same entry, so it leaves as a whole
        change.removed_learnings = list(range(len(entry_learnings(before))))
        draft.remove(index, Rule.LOWEST_LEARNING, PruneAction.COMPRESS if keep else PruneAction.ARCHIVE)
        return
    draft.replace(index, block, Rule.LOWEST_LEARNING)


class Rankings(NamedTuple):
    """The ids of the entries that rank against each other, the first to leave first."""

    noise: tuple[str, ...]
    learnings: tuple[str, ...]  # by the lowest learning of each entry


def rank_entries(draft: PruneDraft, facts: Facts, today: date) -> Rankings:
    """Return the orders of removal of a file as it is."""
    noise = [draft.statuses[item.index].id for item in reversed(_ranked_noise(draft, today))]
    values = learning_values(draft, facts)
    inscribed = sorted(
        draft.removable([Layer.INSCRIBED]),
        key=lambda status: (
            min(values[status.index], default=0.0),
            not status.evidence_gone,
            status.removal_order,
        ),
    )
    return Rankings(tuple(noise), tuple(status.id for status in inscribed))
