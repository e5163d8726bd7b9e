"""Read the noise of a memory file: completed tasks and passing remarks, and what a reader can learn from each.

Observations are written by hooks: a task's subject, and the beginning of its description, cut off at some character.
Most say only that a task was done. Some name the file, the flaw and the remedy.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from echod.lazy import lazy_pattern
from echod.memory.document import parse_block
from echod.memory.edit import learnings, split_body
from echod.memory.forms import Recurrence, add_recurrences, find_recurrence
from echod.memory.identity import normalize_title
from echod.memory.knowledge.text import join_sentences, split_sentences
from echod.memory.model import Block, Entry, Field, Form, Layer
from echod.memory.similarity.words import find_numbers, fold, jaccard, stem, tokenize
from echod.memory.specificity import NameCounts, Specificity, contains_name

MIN_CONTEXT_SIMILARITY = 0.5
"""Share of the words of two descriptions from which on two tasks of one title say the same."""

_MIN_LEARNING_SIMILARITY = 0.8
_SUMMARY_TITLE = "Routine tasks without details"
_SUMMARY_SOURCE = "echod/roll-up"
_AGENT_KIND = lazy_pattern(r"`([^`\n]+)`")
_MAX_KINDS = 12  # agent kinds that a summary names
_OPENING_WORDS = 5  # words by which sentences are compared
_MAX_CONTEXT_WORDS = 48  # words of a description that stay
_MIN_CUT_OFF_WORDS = 8  # words of a sentence that was cut off and is of use still
_COMPLETED = lazy_pattern(r"task completed: *", re.IGNORECASE)
_CONTEXT = lazy_pattern(r"context: *", re.IGNORECASE)
_ESCAPED_BREAK = lazy_pattern(r"\\[nrt]")
_FENCE = lazy_pattern(r"`{3}\w*|~{3}\w*")
_NUMBER_BACKWARDS = lazy_pattern(r"(?:\d[a-z]?[-_]?)+", re.IGNORECASE)  # linear only from the end of the name
_PASSING_WORD = lazy_pattern(r"\d{4}|^(?=\D*\d)(?=\d*\D)\w{5,}$|^tmp$")  # dates, times, hashes and ids of one run
_BELOW_TMP = lazy_pattern(r"\btmp/")
_COMPLETE = lazy_pattern(r"[.!?:;)\]\"'`\u201d\u2026]\W*$")
_MAX_LENGTH = 4_000  # characters of a description that are read


@dataclass(frozen=True)
class NoiseItem:
    """An observation or traced entry."""

    index: int  # its position among the blocks of the file
    block: Block
    entry: Entry
    day: date  # the day on which it was last verified

    @cached_property
    def agent_kind(self) -> str:
        """The name of the agent without its number: `ward` for `rune-review-17/ward-w2-3`."""
        name = (self.entry.source or "").rpartition("/")[2]
        number = _NUMBER_BACKWARDS.match(name[::-1])
        return name[: -number.end()] or name if number else name

    @cached_property
    def workflow(self) -> str:
        """The workflow that the source names."""
        source = self.entry.source or ""
        return source.rpartition("/")[0] or source

    @cached_property
    def source_field(self) -> Field | None:
        """The line that may carry a remark on recurrence."""
        field = next((field for field in self.entry.fields if field.name == "source"), None)
        return field if field and field.value.strip() and "\n" not in field.value else None

    @cached_property
    def recurrence(self) -> Recurrence:
        """How often it was reported."""
        found = find_recurrence(self.source_field.value) if self.source_field else None
        day = self.entry.heading_date or self.day
        return found or Recurrence(1, 1, day, day)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of its description as written, without what repeats the title."""
        title = normalize_title(self.entry.title)
        result: list[str] = []
        for part in learnings(split_body(self.block.body)):
            text = _CONTEXT.sub("", part.words, count=1) if part.is_item else part.words
            if _COMPLETED.match(text) and normalize_title(_COMPLETED.sub("", text, count=1)) == title:
                continue
            for line in _ESCAPED_BREAK.split(text[:_MAX_LENGTH]):
                result += [sentence for sentence in split_sentences(_FENCE.sub(" ", line).strip()) if sentence]
        return tuple(result)

    @cached_property
    def text(self) -> str:
        """Title and description, for judging."""
        return ". ".join([self.entry.full_title if self.entry.kind != "Task" else self.entry.title, *self.sentences])

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for tasks that may say the same: agent kind, and the title without what belongs to one run."""
        words = _comparison_words(self.entry.title)
        return self.entry.layer, self.agent_kind, words or normalize_title(self.entry.title)

    @cached_property
    def context_words(self) -> frozenset[str]:
        """The words of the description, without what belongs to one run."""
        return _comparison_words(" ".join(self.sentences))

    @property
    def is_compact(self) -> bool:
        """It was rolled up before: nothing is left to cut."""
        return (
            self.entry.form is Form.OBSERVATION
            and {field.name for field in self.entry.fields} <= {"source", "layer"}
            and (not self.block.body.lstrip("- ").lower().startswith(("task completed:", "context:")))
        )


class NoiseJudge:
    """Judges the noise of one file: a name or sentence that many share is no content."""

    def __init__(self, items: Sequence[NoiseItem]) -> None:
        self._names = NameCounts(item.text for item in items)
        self._openings: dict[str, str] = {}
        self._sentences = Counter(
            opening for item in items for opening in {self._opening(sentence) for sentence in item.sentences}
        )
        self._many = max(2, math.floor(0.05 * len(items)))
        self._cache: dict[int, Specificity] = {}

    def specificity(self, item: NoiseItem) -> Specificity:
        """Return what a reader can learn from an item."""
        if item.index not in self._cache:
            telling = [sentence for sentence in item.sentences if not self._is_shared(sentence)]
            found = self._names.judge(". ".join([item.entry.title, *telling]))
            if telling and not found.is_assignment:
                found = found._replace(is_assignment=self._names.judge(telling[0]).is_assignment)
            self._cache[item.index] = found
        return self._cache[item.index]

    def value(self, item: NoiseItem) -> float:
        """Return the rank of an item: its specificity, and a little for each doubling of its count."""
        specificity = self.specificity(item)
        return specificity.value + (math.log2(item.recurrence.times) if specificity.value else 0.0)

    def context(self, item: NoiseItem) -> str:
        """Return the telling sentences of a description as written, in their order, within a few words.

        Those that other tasks have too, and one that was cut off, are the last to be chosen.
        """
        sentences = [sentence for sentence in item.sentences if not self._is_shared(sentence)]
        is_cut_off = len(sentences) > 1 and not _COMPLETE.search(sentences[-1])
        if is_cut_off and len(sentences[-1].split()) < _MIN_CUT_OFF_WORDS:
            sentences.pop()
            is_cut_off = False
        routine = self.specificity(item).is_routine
        found = [self._names.judge(sentence) for sentence in sentences]
        values = [one.value if routine else one.sentence_value for one in found]
        last = len(sentences) - 1
        ranked = sorted(
            range(len(sentences)),
            key=lambda index: (
                self._sentences[self._opening(sentences[index])] > 1 or (is_cut_off and index == last),
                -values[index],
                index,
            ),
        )
        chosen: list[int] = []
        words = 0
        for index in ranked:
            size = len(sentences[index].split())
            if words + size <= _MAX_CONTEXT_WORDS and (values[index] or not chosen):
                chosen.append(index)
                words += size
        return join_sentences(sentences[index] for index in sorted(chosen))

    def _is_shared(self, sentence: str) -> bool:
        return self._sentences[self._opening(sentence)] > self._many

    def _opening(self, sentence: str) -> str:
        """Return the beginning of a sentence, by which sentences that were cut off at different places are equal."""
        if sentence not in self._openings:
            opening = " ".join(sentence.lower().split()[:_OPENING_WORDS])
            self._openings[sentence] = sentence.lower() if contains_name(opening) else opening
        return self._openings[sentence]


def group_noise(items: Iterable[NoiseItem], judge: NoiseJudge) -> tuple[tuple[NoiseItem, ...], ...]:
    """Return the groups of items that say the same, each with the most specific item first.

    Items that were rolled up before are never joined with each other, so that grouping again changes nothing.
    """
    groups: dict[tuple[object, ...], list[list[NoiseItem]]] = {}
    for item in sorted(items, key=lambda item: (not item.is_compact, item.index)):
        if item.source_field is None:
            groups[("alone", item.index)] = [[item]]
            continue
        candidates = groups.setdefault(item.key, [])
        group = None if item.is_compact else next((g for g in candidates if says_the_same(g[0], item, judge)), None)
        if group is None:
            candidates.append([item])
        else:
            group.append(item)
    result = [
        tuple(sorted(group, key=lambda item: (-judge.specificity(item).value, not item.is_compact, item.index)))
        for candidates in groups.values()
        for group in candidates
    ]
    return tuple(sorted(result, key=lambda group: min(item.index for item in group)))


def says_the_same(one: NoiseItem, other: NoiseItem, judge: NoiseJudge) -> bool:
    """Return whether two items of one key say the same."""
    if one.entry.layer is Layer.TRACED:
        # A learning that differs in a number is another one. A task done once more is not.
        one_numbers, other_numbers = (sorted(find_numbers(fold(item.text))) for item in (one, other))
        return (
            one_numbers == other_numbers and jaccard(one.context_words, other.context_words) >= _MIN_LEARNING_SIMILARITY
        )
    if judge.specificity(one).is_routine or judge.specificity(other).is_routine:
        return True
    return jaccard(one.context_words, other.context_words) >= MIN_CONTEXT_SIMILARITY


def compact_observation(item: NoiseItem, context: str) -> Block | None:
    """Return an observation as heading, source and one line; None where that is not shorter or reads differently."""
    field = item.source_field
    if item.entry.form is not Form.OBSERVATION or field is None or item.is_compact:
        return None
    text = item.block.text
    newline = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    heading = text.partition("\n")[0].rstrip("\r")
    source = text[text.rfind("\n", 0, field.span.start) + 1 : field.span.end].strip()
    source = source if source.startswith(("-", "*", "+")) else f"- {source}"
    tail = "\n" * text[len(text.rstrip()) :].count("\n")
    lines = [heading, source, *([f"- {context}"] if context else [])]
    result = parse_block(newline.join(lines) + tail.replace("\n", newline))
    new = result.entry
    if new is None or len(result.text) >= len(text):
        return None
    same = (new.form, new.layer, new.title, new.heading_date, new.source) == (
        item.entry.form, item.entry.layer, item.entry.title, item.entry.heading_date, item.entry.source,
    )  # fmt: skip
    return result if same and result.body.strip() == (f"- {context}" if context else "") else None


def is_routine_summary(item: NoiseItem) -> bool:
    """Return whether an item is the entry that counts tasks without details."""
    return item.entry.source == _SUMMARY_SOURCE


def summarize_routine(items: Sequence[NoiseItem], summary: NoiseItem | None) -> Block | None:
    """Return the entry that counts these tasks, in place of an earlier summary; None if it would read differently."""
    total = add_recurrences([(item.workflow, item.recurrence) for item in items])
    kinds: dict[str, None] = {}
    for item in items:
        named = _AGENT_KIND.findall(item.block.body) if is_routine_summary(item) else [item.agent_kind]
        kinds.update(dict.fromkeys(kind for kind in named if kind and "`" not in kind))
    day = summary.entry.heading_date if summary else None
    text = "\n".join([
        f"## Observations \u2014 Task: {_SUMMARY_TITLE} ({(day or total.last).isoformat()})",
        f"- **source**: `{_SUMMARY_SOURCE}` {total}",
        f"- Agents: {', '.join(f'`{kind}`' for kind in sorted(kinds)[:_MAX_KINDS]) or 'unknown'}",
    ])  # fmt: skip
    first = summary or items[0]
    newline = "\r\n" if first.block.text.partition("\n")[0].endswith("\r") else "\n"
    tail = first.block.text[len(first.block.text.rstrip()) :].replace("\r\n", "\n")
    block = parse_block((text + tail).replace("\n", newline))
    new = block.entry
    return block if new is not None and (new.title, new.source) == (_SUMMARY_TITLE, _SUMMARY_SOURCE) else None


def _comparison_words(text: str) -> frozenset[str]:
    kept = " ".join(part for part in text[:_MAX_LENGTH].split() if not _BELOW_TMP.search(part))
    words = (stem(word) for word in tokenize(fold(kept)))
    return frozenset(word for word in words if not _PASSING_WORD.search(word))
