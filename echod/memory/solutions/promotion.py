"""Decide whether an entry may become a solution, and plan the file: rules, duplicates, name, hash.

Each rule that fails is a `RuleFailure` with its name, the reason, and what would satisfy it. No rule is skipped because
another one failed, so that the user sees all of them at once.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import date
from enum import StrEnum
from typing import Final, NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.compose import collapse_whitespace
from echod.memory.document import parse_block
from echod.memory.identity import normalize_title
from echod.memory.model import HIGH_CONFIDENCE, Block, Entry, Form, Layer, SolutionCategory
from echod.memory.redact import redact, redact_entry
from echod.memory.similarity import DEFAULT_THRESHOLDS, fold, jaccard, stem, tokenize
from echod.memory.solutions.document import (
    MAX_TAGS,
    Solution,
    SolutionConfidence,
    SolutionDocument,
    SolutionParts,
    VerifiedBy,
    extract_parts,
)

MIN_SESSIONS: Final = 2
MIN_SHARED_TAGS: Final = 3
MAX_SLUG: Final = 80
"""Characters of a file name without `.md`."""

_MAX_TERMS_ABOUT_AGENTS: Final = 1
_MIN_TAG_WORD: Final = 3
_ABOUT_AGENTS: Final = lazy_pattern(
    r"\b(sub-?agents?|teammates?|tarnished|elden lord|runebearers?|ash(?:es)?|context window|context budget"
    r"|token budget|system prompt|prompt injection anchor|task ?completed|teamcreate|teamdelete|sendmessage"
    r"|tool calls?|orchestrator|spawn(?:ed|ing)? agents?|agent prompts?)\b",
    re.IGNORECASE,
)
_RESERVED_SLUGS: Final = frozenset({"readme", "index", "memory", "knowledge"})
_NOT_SLUG: Final = lazy_pattern(r"[^a-z0-9]+")
_PATH: Final = lazy_pattern(r"`([^`\n]+)`")
_STOP_WORDS: Final = frozenset({
    "the", "and", "for", "with", "from", "into", "that", "this", "when", "must", "should", "never", "always", "not",
    "are", "was", "has", "have", "its", "all", "one", "two", "use", "uses", "using", "before", "after", "than", "then",
})  # fmt: skip
_REFERENCE: Final = lazy_pattern(r"(?P<path>[^#\s]+)#(?P<id>[^@\s]+)@sha256:(?P<digest>\S+)")
_DIGEST: Final = lazy_pattern(r"[0-9a-f]{64}")


class PromotionRule(StrEnum):
    """The rules of the decision, in its order."""

    ETCHED = "etched"
    PROBLEM_AND_SOLUTION = "problem-and-solution"
    VALIDATED = "validated"
    FOR_PEOPLE = "for-people"
    SECURITY = "security"
    DUPLICATE = "duplicate"


class RuleFailure(NamedTuple):
    """A rule that an entry does not fulfil. Both texts are sentences; `remedy` is what would fulfil it."""

    rule: PromotionRule
    reason: str
    remedy: str


class PromotionRequest(NamedTuple):
    """A promotion that the user requests. None leaves a text to the entry.

    `raises` is true if an inscribed entry becomes etched with it. `verified_by` is `HUMAN` only after the user typed a
    confirmation at a terminal.
    """

    category: SolutionCategory
    symptom: str | None = None
    root_cause: str | None = None
    solution: str | None = None
    tags: tuple[str, ...] | None = None
    title: str | None = None
    raises: bool = False
    verified_by: VerifiedBy = VerifiedBy.AGENT


class EntryReference(NamedTuple):
    """A reference to an entry from a file that may be in another place: `{path}#{id}@sha256:{digest}`."""

    path: str
    entry_id: str
    digest: str

    @property
    def is_complete(self) -> bool:
        """False if the digest is abbreviated or no digest, so that nothing can be compared with it."""
        return _DIGEST.fullmatch(self.digest) is not None

    def __str__(self) -> str:
        """Return the reference as the front matter has it."""
        return f"{self.path}#{self.entry_id}@sha256:{self.digest}"


def parse_reference(text: str) -> EntryReference | None:
    """Parse an `echo_ref`; None if it has another form."""
    match = _REFERENCE.fullmatch(text)
    return EntryReference(match["path"], match["id"], match["digest"]) if match else None


def entry_digest(block: Block) -> str:
    """Return the SHA-256 of an entry's canonical text, in hex digits.

    The canonical text is the title with its kind, the source, the evidence and the learning, without secrets, with line
    feeds as line ends and without spaces at their ends. Layer, confidence, the date of the verification and
    `promoted_to` are no part of it, because echod changes them by itself.
    """
    clean = parse_block(redact_entry(block.text).text)
    entry = clean.entry
    if entry is None:
        lines = clean.text.splitlines()
    else:
        title = collapse_whitespace(entry.full_title)
        evidence = collapse_whitespace(entry.evidence or "")
        source = collapse_whitespace(entry.source or "")
        lines = [title, f"source: {source}", f"evidence: {evidence}", "", *clean.body.replace("\r\n", "\n").split("\n")]
    canonical = "\n".join(line.rstrip() for line in lines).strip() + "\n"
    return hashlib.sha256(canonical.encode()).hexdigest()


def build_solution(block: Block, request: PromotionRequest, reference: EntryReference, today: date) -> Solution:
    """Return the solution that an entry would become, with what the user gave. Its secrets are removed."""
    clean = parse_block(redact_entry(block.text).text)
    entry = clean.entry
    parts = extract_parts(clean)
    title = request.title or (entry.title if entry else "")
    high = entry is not None and entry.is_confident
    return Solution(
        title=redact(collapse_whitespace(title)).text,
        category=request.category,
        tags=_normalized_tags(request.tags if request.tags is not None else _own_tags(entry, title)),
        day=today,
        symptom=_chosen(request.symptom, parts.symptom),
        root_cause=_chosen(request.root_cause, parts.root_cause),
        solution=_chosen(request.solution, parts.solution),
        prevention=parts.prevention,
        confidence=SolutionConfidence.HIGH if high else SolutionConfidence.MEDIUM,
        verified_by=request.verified_by,
        echo_ref=str(reference),
        affected_files=cited_files(entry),
    )


def _chosen(given: str | None, extracted: str) -> str:
    return redact(given if given is not None else extracted).text.strip()


def cited_files(entry: Entry | None) -> tuple[str, ...]:
    """Return the citations in back quotes of an entry's evidence, as written, each once."""
    if entry is None or not entry.evidence:
        return ()
    cited = (match[1].strip() for match in _PATH.finditer(entry.evidence))
    return tuple(dict.fromkeys(path for path in cited if path and " " not in path and ("/" in path or "." in path)))


def _own_tags(entry: Entry | None, title: str) -> tuple[str, ...]:
    """Return the tags of an entry, or else the words of its title that carry its meaning."""
    own = next((field.value for field in entry.fields if field.name == "tags"), "") if entry else ""
    if own:
        return tuple(own.strip("[]").split(","))
    words = [word for word in _slug(title).split("-") if len(word) >= _MIN_TAG_WORD and word not in _STOP_WORDS]
    return tuple(words[:5])


def _normalized_tags(tags: Iterable[str]) -> tuple[str, ...]:
    slugs = (_slug(redact(tag).text) for tag in tags)
    return tuple(dict.fromkeys(filter(None, slugs)))[:MAX_TAGS]


# The rules


def find_failures(
    block: Block, solution: Solution, request: PromotionRequest, sessions: int
) -> tuple[RuleFailure, ...]:
    """Return the rules that an entry does not fulfil, in the order of the decision. Duplicates are not looked for.

    `sessions` is the number of sessions and workflows that referenced the entry.
    """
    return tuple(
        failure
        for failure in (
            _check_etched(block, request),
            _check_parts(solution),
            _check_validated(block, sessions),
            _check_for_people(block, solution),
            _check_security(block, solution),
        )
        if failure is not None
    )


def _check_etched(block: Block, request: PromotionRequest) -> RuleFailure | None:
    entry = block.entry
    layer = entry.layer if entry else None
    if layer is Layer.ETCHED:
        return None
    if entry is not None and entry.is_lasting:
        if request.raises:
            return None
        remedy = "Add --raise to make it etched with it, or raise it first: echod raise ENTRY etched"
    else:
        remedy = "Raise it first, if it is meant to last: echod raise ENTRY etched"
    return RuleFailure(PromotionRule.ETCHED, f"It is {layer.value if layer else 'of an unknown layer'}.", remedy)


def _check_parts(solution: Solution) -> RuleFailure | None:
    given = (
        ("symptom", "--symptom", solution.symptom),
        ("root cause", "--root-cause", solution.root_cause),
        ("solution", "--solution", solution.solution),
    )
    missing = [(name, option) for name, option, text in given if not text.strip()]
    if not solution.title.strip():
        missing.append(("title", "--title"))
    if not missing:
        return None
    names, options = (", ".join(column) for column in zip(*missing, strict=True))
    return RuleFailure(
        PromotionRule.PROBLEM_AND_SOLUTION,
        f"It has no {names} that is labelled as such.",
        f"Describe it with {options}, or run the command at a terminal to write it in your editor.",
    )


def _check_validated(block: Block, sessions: int) -> RuleFailure | None:
    confidence = block.entry.confidence if block.entry else None
    if (confidence or 0) >= HIGH_CONFIDENCE or sessions >= MIN_SESSIONS:
        return None
    shown = "no confidence" if confidence is None else f"a confidence of {confidence:g}"
    return RuleFailure(
        PromotionRule.VALIDATED,
        f"It has {shown}, and {sessions} {'session' if sessions == 1 else 'sessions'} referenced it.",
        f"It needs a confidence of {HIGH_CONFIDENCE:g} (HIGH), or references by {MIN_SESSIONS} sessions.",
    )


def _check_for_people(block: Block, solution: Solution) -> RuleFailure | None:
    remedy = "Describe it for a reader who uses no agents, with --title, --symptom, --root-cause and --solution."
    entry = block.entry
    if entry is not None and (entry.form is Form.OBSERVATION or entry.layer is Layer.OBSERVATIONS):
        return RuleFailure(
            PromotionRule.FOR_PEOPLE,
            "It records a task of an agent.",
            "Write down what was learned from the task, as an entry of its own: echod remember TEXT",
        )
    text = f"{solution.title}\n{solution.symptom}\n{solution.root_cause}\n{solution.solution}"
    terms = tuple(dict.fromkeys(match[1].lower() for match in _ABOUT_AGENTS.finditer(text)))
    if len(terms) <= _MAX_TERMS_ABOUT_AGENTS:
        return None
    return RuleFailure(PromotionRule.FOR_PEOPLE, f"It is about how agents work ({', '.join(terms)}).", remedy)


def is_about_security(block: Block, category: SolutionCategory) -> bool:
    """Return whether a solution needs the confirmation of a human, because of its category or the entry's own."""
    own = next((field.value for field in block.entry.fields if field.name == "category"), "") if block.entry else ""
    return category is SolutionCategory.SECURITY or own.strip(" `\"'").lower() == SolutionCategory.SECURITY


def _check_security(block: Block, solution: Solution) -> RuleFailure | None:
    if solution.verified_by is VerifiedBy.HUMAN or not is_about_security(block, solution.category):
        return None
    return RuleFailure(
        PromotionRule.SECURITY,
        "It is about security, and no human has verified it.",
        "Run the command yourself at a terminal, and type the confirmation. No option replaces it.",
    )


# Duplicates


class ExistingSolution(NamedTuple):
    """A solution in the project: its path from the root of the project, and its content."""

    path: str
    document: SolutionDocument


class SharedTags(NamedTuple):
    """A solution that has several tags in common with the new one."""

    path: str
    tags: tuple[str, ...]


class Duplicates(NamedTuple):
    """The solutions that are related to a new one.

    Attributes:
        update: the path of the solution that the new one replaces, because it has the same title; None without one.
        related: the paths of solutions with a similar root cause.
        shared_tags: solutions with at least three tags of the new one. The user decides.
        failure: why the solution of the same title is not replaced.
    """

    update: str | None
    related: tuple[str, ...]
    shared_tags: tuple[SharedTags, ...]
    failure: RuleFailure | None = None


def find_duplicates(solution: Solution, existing: Sequence[ExistingSolution]) -> Duplicates:
    """Compare a solution with those of the project. Superseded ones do not count."""
    current = [one for one in existing if not one.document.superseded_by]
    title = normalize_title(solution.title)
    same = next((one for one in current if normalize_title(one.document.title) == title), None)
    others = [one for one in current if one is not same]
    cause = _terms(solution.root_cause)
    related = [
        one.path
        for one in others
        if jaccard(cause, _terms(one.document.root_cause)) >= DEFAULT_THRESHOLDS.body and cause
    ]
    shared = [
        SharedTags(one.path, tags)
        for one in others
        if len(tags := tuple(tag for tag in solution.tags if tag in _normalized_tags(one.document.tags)))
        >= MIN_SHARED_TAGS
    ]
    failure = None if same is None else _check_replaceable(solution, same)
    return Duplicates(None if same is None else same.path, tuple(related), tuple(shared), failure)


def _check_replaceable(solution: Solution, same: ExistingSolution) -> RuleFailure | None:
    if not same.document.echo_ref:
        reason = f"{same.path} has the same title and was written by hand, so it is not replaced."
        return RuleFailure(PromotionRule.DUPLICATE, reason, "Choose another --title, or edit that file.")
    if same.document.category != solution.category:
        reason = f"{same.path} has the same title, in the category {same.document.category}."
        remedy = f"Use --category {same.document.category} to update it, or choose another --title."
        return RuleFailure(PromotionRule.DUPLICATE, reason, remedy)
    return None


def _terms(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in tokenize(fold(text)) if word not in _STOP_WORDS)


# Names


def slug_of(title: str, entry_id: str) -> str:
    """Return the name of the file for a title, without `.md`: `a-z`, `0-9` and `-`, at most 80 characters.

    A title without such letters gets the entry's id. Names that mean something else in the directory get a suffix.
    """
    slug = _slug(title)
    if len(slug) > MAX_SLUG:
        slug = slug[: MAX_SLUG + 1].rpartition("-")[0] or slug[:MAX_SLUG]
    if not slug:
        return f"solution-{entry_id}"
    return f"{slug}-solution" if slug in _RESERVED_SLUGS or slug.endswith("-findings") else slug


def free_slug(slug: str, taken: Container[str]) -> str:
    """Return the name, or the first of `{name}-2`, `{name}-3`, ... that is not taken."""
    return next(name for name in _numbered(slug) if name not in taken)


def _numbered(slug: str) -> Iterator[str]:
    yield slug
    number = 2
    while True:
        yield f"{slug}-{number}"
        number += 1


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.replace("ß", "ss")).encode("ascii", "ignore").decode()
    return _NOT_SLUG.sub("-", plain.lower()).strip("-")


# Proposals


def suggest_category(block: Block) -> SolutionCategory:
    """Return the entry's own category if it is one of the eight, else the one whose words its text has most."""
    own = next((field.value for field in block.entry.fields if field.name == "category"), "") if block.entry else ""
    if own.strip(" `\"'").lower() in set(SolutionCategory):
        return SolutionCategory(own.strip(" `\"'").lower())
    words = tokenize(fold(block.text))
    scores = {category: sum(word in hints for word in words) for category, hints in _CATEGORY_WORDS.items()}
    best = max(scores, key=lambda category: scores[category])
    return best if scores[best] else SolutionCategory.ARCHITECTURE


_CATEGORY_WORDS: Final = {
    category: frozenset(words.split())
    for category, words in (
        (SolutionCategory.BUILD_ERRORS, "build compile compiler linker dependency dependencies wheel"),
        (SolutionCategory.TEST_FAILURES, "test tests flaky assertion fixture mock pytest"),
        (SolutionCategory.RUNTIME_ERRORS, "crash exception traceback timeout deadlock runtime"),
        (SolutionCategory.CONFIGURATION, "config configuration setting settings environment deployment"),
        (SolutionCategory.PERFORMANCE, "slow latency query index cache caching memory performance"),
        (SolutionCategory.SECURITY, "security auth authentication permission secret owasp injection"),
        (SolutionCategory.TOOLING, "ci cli ide editor pipeline workflow lint formatter"),
    )
}


def sessions_to_promote(block: Block) -> int | None:
    """Return how many sessions must reference an entry to fulfil every rule, without any text of the user's.

    A confident inscribed entry, which becomes etched with the promotion, always needs some. None if the entry fulfils
    the rules in no case, or was promoted already. An entry about security counts: the user confirms it when it is
    promoted.
    """
    entry = block.entry
    if entry is None or not entry.is_lasting or any(field.name == "promoted_to" for field in entry.fields):
        return None
    if extract_parts(block) == SolutionParts():
        return None
    is_etched = entry.layer is Layer.ETCHED
    request = PromotionRequest(suggest_category(block), raises=not is_etched, verified_by=VerifiedBy.HUMAN)
    solution = build_solution(block, request, EntryReference("", "", ""), date.min)
    numbers = (0, MIN_SESSIONS) if is_etched else (MIN_SESSIONS,)
    return next((number for number in numbers if not find_failures(block, solution, request, sessions=number)), None)
