"""Turn completed tasks and reported learnings into memory: select, raise the count of a similar entry, or append.

A hook of an agent's session reports a task. Guards drop unsuitable tasks, each with a reason that is counted. Every
other task becomes an entry of the lowest layer, in the form that other writers of these files use.

A task that is done again adds no line. The text of an observation that is only counted goes to the archive, word for
word. One that is more specific than the entry it resembles is appended, so that the better text is in the file.

From there it goes the way of all findings: redacted, compared with what is known, and consolidated between workflows.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.compose import ComposeError, append_entries, compose_entry, detect_newline
from echod.memory.document import appended_blocks, parse, parse_block, round_trips
from echod.memory.edit import with_recurrence
from echod.memory.findings import DEFAULT_LAYER, Finding
from echod.memory.forms import Recurrence, add_recurrences, find_recurrence, without_recurrence
from echod.memory.identity import block_content, block_key, entry_ids
from echod.memory.model import DEFAULT_CONFIDENCE, Block, Document, Form, Layer, Unreadable
from echod.memory.noise import NoiseItem, NoiseJudge, is_routine_summary, says_the_same, summarize_routine
from echod.memory.redact import redact, redact_entry

MAX_TEXT_LENGTH = 500
"""The maximal number of characters of a subject and of a description."""

_DEFAULT_ROLE = "orchestrator"

# Words of a team's or an agent's name that imply its role. The first match counts: a plan review is a review.
_ROLE_WORDS = (
    ("reviewer", frozenset({"review", "reviewer", "appraise", "audit", "auditor"})),
    ("planner", frozenset({"plan", "planner", "devise"})),
    ("workers", frozenset({"work", "worker", "workers", "strive", "arc"})),
)

_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HOUSEKEEPING = lazy_pattern(
    r"(?<![a-z])(?:shut[ -]?down|clean[ -]?up|aggregate|monitor)(?:s|d|ed|ing)?(?![a-z])", re.IGNORECASE
)
_TEAM = lazy_pattern(r"[A-Za-z0-9_-]{1,128}")
_AGENT = lazy_pattern(r"[A-Za-z0-9_:.-]{1,128}")
_SIGNAL_TEAM = lazy_pattern(r"(?:rune|arc)-[A-Za-z0-9_-]{1,124}")
_SIGNAL_TASK = lazy_pattern(r"[A-Za-z0-9_-]{1,64}")
_MARKUP = lazy_pattern(r"`{3,}|~{3,}|<!--|-->")
_DATE_MARK = lazy_pattern(r"\((\d{4}-\d{2}-\d{2})\)")
_SENTENCE_END = lazy_pattern(r"(?<![.!?\u2026])[.!?\u2026]++[)\]\"'`\u201d\u2019]*+(?=[ \\])|[\u3002\uff01\uff1f]")
_SPACE_CATEGORIES = frozenset({"Zs", "Zl", "Zp"})
_SEPARATING_CONTROLS = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_VARIATION_SELECTORS = lazy_pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Characters of a text that are read, enough to fill `MAX_TEXT_LENGTH` after cleaning.
_MAX_INPUT_LENGTH = 40 * MAX_TEXT_LENGTH


# In the order of the fields of `Task`.
_EVENT_FIELDS = (
    "session_id", "agent_id", "agent_type", "teammate_name", "team_name", "task_id", "task_subject", "task_description",
)  # fmt: skip


class ObservationDropReason(StrEnum):
    """The reasons why an event is not recorded as an observation, worded for the user."""

    UNREADABLE = "the event is malformed"
    NO_SUBJECT = "the task has no subject"
    NO_TASK = "the task has no id"
    NO_TEAM = "the session has no team"
    INVALID_TEAM = "the team's name is invalid"
    UNLISTED_TEAM = "the team is not observed (observe.teams)"
    HOUSEKEEPING = "the task is housekeeping (shutdown, cleanup, aggregate, monitor)"


class Task(NamedTuple):
    """A completed task as reported to the hook. All values are the agent's own text; a missing value is ""."""

    session: str
    agent_id: str  # the agent in the session; "" for the main one
    agent_type: str  # a subagent's definition; in a team, the member's name
    teammate: str  # the member's name in a team
    team: str
    id: str  # the task's number, which starts again in each session
    subject: str
    description: str


class Observation(NamedTuple):
    """A task that is worth an entry."""

    key: str  # identifies the task among all tasks of all sessions; the same for a task that is reported twice
    role: str  # the role whose memory it belongs to
    text: str  # the entry, ending with one newline, without secrets
    # The name of the file by which other writers of observations mark this one as written; None for teams that they
    # ignore.
    signal: str | None


class UnwritableMemory(NamedTuple):
    """A memory file that cannot take observations; `reason` is a sentence for the user."""

    reason: str


def parse_task(event: Mapping[str, object]) -> Task:
    """Return the task of a `TaskCompleted` event. Missing and malformed fields are empty."""
    return Task(*(_event_text(event, name) for name in _EVENT_FIELDS))


def observe_task(
    task: Task, *, definition: str, teams: Sequence[str], day: date
) -> Observation | ObservationDropReason:
    """Return the observation of a task that was completed on this local day, or why it is dropped.

    `definition` is the name of the agent's definition where it is known from elsewhere, else "". `teams` are patterns
    (`rune-*`) of the observed teams; "" matches sessions without a team.
    """
    subject, description = _clean_line(task.subject), _clean_line(task.description)
    if not subject:
        return ObservationDropReason.NO_SUBJECT
    if not task.id:
        return ObservationDropReason.NO_TASK
    if not task.team and "" not in teams:
        return ObservationDropReason.NO_TEAM
    if task.team and not any(fnmatchcase(task.team, pattern) for pattern in teams):
        return ObservationDropReason.UNLISTED_TEAM
    if task.team and not _TEAM.fullmatch(task.team):
        return ObservationDropReason.INVALID_TEAM
    if _HOUSEKEEPING.search(subject):
        return ObservationDropReason.HOUSEKEEPING
    team = task.team or f"session-{task.session[:8]}"
    role = infer_role(task.team) or infer_role(definition or task.agent_type) or _DEFAULT_ROLE
    return Observation(
        key=_task_key(task, subject),
        role=role,
        text=_entry_text(subject, description, f"{team}/{_agent_name(task)}", day),
        signal=_signal_name(task),
    )


def infer_role(name: str) -> str | None:
    """Return the role implied by the words of a name; None if none is. `research` is not `arc`."""
    words = {word.lower() for word in _WORD.findall(name)}
    return next((role for role, role_words in _ROLE_WORDS if words & role_words), None)


def existing_texts(memory: bytes) -> tuple[str, ...]:
    """Return the texts of the entries in a memory file, for comparison with the `comparison_text` of observations."""
    document = parse(memory)
    return () if isinstance(document, Unreadable) else tuple(map(_text_without_count, document.blocks))


def _text_without_count(block: Block) -> str:
    field = next((field for field in block.entry.fields if field.name == "source"), None) if block.entry else None
    if field is None or find_recurrence(field.value) is None:
        return block_content(block)
    end = field.span.start + len(field.value)
    text = block.text[: field.span.start] + without_recurrence(field.value) + block.text[end:]
    return block_content(parse_block(text))


def comparison_text(observation: Observation) -> str:
    """Return the observation's text in the form of `existing_texts`."""
    return block_content(parse_block(observation.text))


def with_observations(memory: bytes, observations: Iterable[Observation]) -> bytes | UnwritableMemory:
    """Return the memory file with these entries at its end. Everything before them reads as it did."""
    before = parse(memory)
    if isinstance(before, Unreadable):
        return UnwritableMemory(before.reason)
    newline = detect_newline(before)
    texts = [observation.text.replace("\n", newline) for observation in observations]
    data = append_entries(before, texts)
    after = parse(data)
    if isinstance(after, Unreadable):
        return UnwritableMemory(after.reason)
    if not _are_appended(before, after, len(texts)):
        return UnwritableMemory("A code block or comment that is never closed in this file would swallow new entries.")
    return data


def _are_appended(before: Document, after: Document, count: int) -> bool:
    """Return whether the file reads as before, with this number of observations at its end."""
    appended = appended_blocks(before, after)
    if appended is None or len(appended) != count:
        return False
    entries = (block.entry for block in appended)
    return all(entry and (entry.form, entry.layer) == (Form.OBSERVATION, Layer.OBSERVATIONS) for entry in entries)


def _event_text(event: Mapping[str, object], name: str) -> str:
    value = event.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip()[:_MAX_INPUT_LENGTH] if isinstance(value, str) else ""


def _task_key(task: Task, subject: str) -> str:
    agent = task.agent_id or task.teammate or task.agent_type
    names = [task.session or task.team, agent, task.id, subject]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]


def _agent_name(task: Task) -> str:
    if not (task.teammate or task.agent_type or task.agent_id):
        return "main"
    name = task.teammate or task.agent_type
    return name if _AGENT.fullmatch(name) else "unknown"


def _signal_name(task: Task) -> str | None:
    if _SIGNAL_TEAM.fullmatch(task.team) and _SIGNAL_TASK.fullmatch(task.id):
        return f".obs-{task.team}_{task.id}"
    return None


def _entry_text(subject: str, description: str, source: str, day: date) -> str:
    source, subject, description = _redact_and_truncate(source, subject, description)
    title = _DATE_MARK.sub(r"\1", subject)  # readers take the first of two dates in a heading
    lines = [
        f"## Observations \u2014 Task: {title} ({day.isoformat()})",
        "- **layer**: observations",
        f"- **source**: `{source}`",
        "- **Confidence**: LOW (auto-generated, unverified)",
        f"- Task completed: {subject}",
        *([f"- Context: {description}"] if description else []),
    ]
    return "\n".join(lines) + "\n"


def _redact_and_truncate(*lines: str) -> list[str]:
    """Return these lines redacted, then truncated. A secret that is cut first may be too short to be recognised."""
    clean = redact("\n".join(lines)).text.split("\n")  # one call, because each is slow
    if len(clean) != len(lines):
        clean = [redact(line).text for line in lines]
    # A run too long for a secret may look like one, or be one, after truncation.
    limit = MAX_TEXT_LENGTH
    return [line if len(line) <= limit else _end_at_sentence(redact(line[:limit]).text[:limit]) for line in clean]


def _end_at_sentence(text: str) -> str:
    """Return a text that was cut off without its last, incomplete sentence, unless that is most of it."""
    ends = [end.end() for end in _SENTENCE_END.finditer(text)]
    return text[: ends[-1]].rstrip() if ends and ends[-1] >= len(text) // 2 else text.rstrip()


def _clean_line(text: str) -> str:
    """Return one line of plain text."""
    if "\n" in text:
        text = redact(text).text  # secrets of several lines are not recognised on one line
    text = "".join(map(_visible_character, _VARIATION_SELECTORS.sub("", text[:_MAX_INPUT_LENGTH])))
    # Remove heading marks first, because removing them can make a comment or fence of the rest.
    text = _MARKUP.sub(" ", _strip_comments(text.replace("#", "")))
    return " ".join(text.split())


def _strip_comments(text: str) -> str:
    """Return the text with a space for each closed comment."""
    parts: list[str] = []
    position = 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[position:start])
        position = end + 3
    return " ".join([*parts, text[position:]])


def _visible_character(character: str) -> str:
    """Return the character, a space for a separator, or nothing for an invisible character."""
    if character < "\x7f":
        return " " if character in _SEPARATING_CONTROLS else character if character >= " " else ""
    category = unicodedata.category(character)
    if character in _SEPARATING_CONTROLS or category in _SPACE_CATEGORIES:
        return " "
    return "" if category in _INVISIBLE_CATEGORIES else character


class RecordedObservations(NamedTuple):
    """A memory file with new observations."""

    data: bytes
    counted: tuple[Observation, ...]  # observations that only raised a count
    replaced: tuple[Block, ...]  # entries whose text changed, as they were


def record_observations(
    role: str,
    memory: bytes,
    observations: Sequence[Observation],
    pinned: Collection[str],
    archived: Callable[[], Iterable[Block]] = tuple,
) -> RecordedObservations | UnwritableMemory:
    """Return the memory file with these observations. Entries with a `pinned` id are not changed.

    `archived` returns the observations that were only counted before. Their sources name the workflows behind a count.
    """
    document = parse(memory)
    if isinstance(document, Unreadable):
        return UnwritableMemory(document.reason)
    counts = _Counts(role, document, pinned, observations, archived)
    counted = tuple(observation for observation in observations if counts.count(observation))
    new = counts.new()
    if not round_trips(counts.document):
        data = with_observations(memory, observations)
        return data if isinstance(data, UnwritableMemory) else RecordedObservations(data, (), ())
    data = with_observations(counts.document.render(), new) if new else counts.document.render()
    return data if isinstance(data, UnwritableMemory) else RecordedObservations(data, counted, counts.replaced)


class _Counts:
    """Counts observations in the entries of a file, and in each other."""

    def __init__(
        self,
        role: str,
        document: Document,
        pinned: Collection[str],
        observations: Sequence[Observation],
        archived: Callable[[], Iterable[Block]],
    ) -> None:
        self.document = document
        self.replaced: tuple[Block, ...] = ()
        self._items: dict[int, NoiseItem] = {}  # by the position of the block; new ones follow those of the file
        self._by_key: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        self._summary: int | None = None
        self._reports: dict[int, list[tuple[str, Recurrence]]] = {}
        self._new: dict[int, Observation] = {}
        self._archived = archived
        self._archived_items: list[NoiseItem] | None = None
        keys = Counter(block_key(block) for block in document.blocks)
        for index, (block, entry_id) in enumerate(zip(document.blocks, entry_ids(role, document), strict=True)):
            is_noise = block.entry is not None and block.entry.layer is Layer.OBSERVATIONS
            if is_noise and entry_id not in pinned and keys[block_key(block)] == 1:
                self._add(_noise_item(index, block))
        self._candidates = {
            observation.key: _noise_item(number, parse_block(observation.text))
            for number, observation in enumerate(observations, start=len(document.blocks))
        }
        self._judge = NoiseJudge([*self._items.values(), *self._candidates.values()])

    def new(self) -> list[Observation]:
        """Return the observations that are entries of their own, with their counts."""
        return [observation._replace(text=self._items[index].block.text) for index, observation in self._new.items()]

    def count(self, observation: Observation) -> bool:
        """Raise the count of the entry that is the same as an observation. False if there is none: it is a new one."""
        item = self._candidates[observation.key]
        if self._is_counted(item):
            return True
        self._new[item.index] = observation
        self._add(item)
        return False

    def _is_counted(self, new: NoiseItem) -> bool:
        value = self._judge.specificity(new).value
        for index in self._by_key[new.key]:
            item = self._items[index]
            if is_routine_summary(item) or not says_the_same(item, new, self._judge):
                continue
            if item.source_field is None or value > self._judge.specificity(item).value:
                return False
            reports = [*self._reports[index], (new.workflow, new.recurrence)]
            total = add_recurrences(reports)
            if total.workflows < total.times:
                total = total._replace(workflows=max(total.workflows, self._count_workflows(item, reports)))
            if not self._replace(index, with_recurrence(item.block, total)):
                return False
            self._reports[index] = reports
            return True
        if self._summary is None or value:
            return False
        summary = self._items[self._summary]
        return self._replace(summary.index, summarize_routine([summary, new], summary))

    def _count_workflows(self, item: NoiseItem, reports: Sequence[tuple[str, Recurrence]]) -> int:
        """Return how many workflows are known by name to have reported an item."""
        if self._archived_items is None:
            blocks = (block for block in self._archived() if block.entry is not None)
            self._archived_items = [_noise_item(-number, block) for number, block in enumerate(blocks, start=1)]
        names = {name for name, _ in reports}
        return len(names | {
            earlier.workflow
            for earlier in self._archived_items
            if earlier.key == item.key and says_the_same(item, earlier, self._judge)
        })  # fmt: skip

    def _add(self, item: NoiseItem) -> None:
        self._items[item.index] = item
        self._by_key[item.key].append(item.index)
        self._reports[item.index] = [(item.workflow, item.recurrence)]
        if is_routine_summary(item):
            self._summary = item.index

    def _replace(self, index: int, block: Block | None) -> bool:
        """Put another block in the place of an item. False if it would be another entry."""
        before = self._items[index].block
        if block is None or block.entry is None or block_key(block) != block_key(before):
            return False
        self._items[index] = NoiseItem(index, block, block.entry, self._items[index].day)
        if index in self._new:
            return True
        if block.body != before.body:
            self.replaced += (before,)
        blocks = list(self.document.blocks)
        blocks[index] = block
        self.document = self.document.with_blocks(blocks)
        return True


def _noise_item(index: int, block: Block) -> NoiseItem:
    if block.entry is None:
        raise ValueError("an observation is an entry")
    return NoiseItem(index, block, block.entry, block.entry.heading_date or date.min)


SOURCE_PREFIX: Final = "echo_learn"
_MAX_TEXT_LENGTH: Final = 8_000


class ReportedLearning(NamedTuple):
    """A learning as it was reported: the store and role that it is for, and the content of its findings file."""

    store: str
    role: str
    data: bytes


def parse_learning(event: Mapping[str, object], day: date) -> ReportedLearning | None:
    """Return the learning of an event that was spooled on this local day; None if it is malformed."""
    store, role, title, text = (_text(event, name) for name in ("store", "role", "title", "learning"))
    if not (store and role and title and text):
        return None
    session = redact(_text(event, "session")).text
    confidence = event.get("confidence")
    finding = Finding(
        key="",
        title=redact(title).text,
        kind="Learning",
        heading_date=day,
        layer=DEFAULT_LAYER,
        claimed_layer=None,
        confidence=float(confidence) if isinstance(confidence, int | float) else DEFAULT_CONFIDENCE,
        source=f"{SOURCE_PREFIX} {session}".strip(),
        evidence=redact(_text(event, "evidence")).text or None,
        verified=day,
        supersedes=None,
        fields=(),
        text=redact_entry(text).text,
    )
    try:
        return ReportedLearning(store, role, compose_entry(finding, Form.BULLET, "\n").encode())
    except ComposeError:
        return None


def _text(event: Mapping[str, object], name: str) -> str:
    value = event.get(name)
    return value.strip()[:_MAX_TEXT_LENGTH] if isinstance(value, str) else ""
