"""Review items about what agents asked for: a claimed layer, or a replacement that was not made.

They depend on the entries that are in the memory file now. Imported by `inspection.review` when there are
questions and the file has changed, because it loads the parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from echod.inspection.cache import EntrySummary
from echod.inspection.entry_facts import read_document
from echod.inspection.inspect import summarize_entries
from echod.inspection.review_items import (
    Information,
    LayerClaim,
    OpenReviewItem,
    ReviewKind,
    SupersededEntry,
    item_id,
)
from echod.memory.consolidation.deduplicate import SupersedeProblem
from echod.memory.entry_matching import present_entries
from echod.memory.model import Layer
from echod.state.entries import EntryStore
from echod.store.journal.notices import CLAIM, Question
from echod.store.layout import Role

TrackedQuestion = tuple[Question, str]
"""A question, and the id that its entry had at the last look at the memory file."""

_NOT_REPLACED_REASONS: Mapping[str, str] = {
    SupersedeProblem.SEVERAL: "it is not the only one with that title",
    SupersedeProblem.NEWER: "it is newer",
    SupersedeProblem.PINNED: "it was pinned",
    SupersedeProblem.UNCLOSED_BLOCK: "a code block or comment above it is never closed",
}


def open_question_items(
    role: Role, questions: Iterable[TrackedQuestion], entry_store: EntryStore | None
) -> Iterator[OpenReviewItem]:
    """Yield an item for each question about an entry that is still in the role's memory file.

    Raises:
        OSError: the memory file cannot be read.
    """
    document = read_document(role.memory)
    if document is None:
        return
    entries = {entry.id: entry for entry in summarize_entries(role.name, document)}
    renames: Mapping[str, str] = {}
    if entry_store is not None:
        renames = entry_store.find_renames(role.store.key, role.name, present_entries(role.name, document))
    for question, identity in questions:
        entry = entries.get(renames.get(identity, identity))
        if entry is None:
            continue
        if question.kind == CLAIM:
            yield from _layer_claim_items(role, question, entry)
        else:
            yield from _superseded_items(role, question, entry, entries)


def _layer_claim_items(role: Role, question: Question, entry: EntrySummary) -> Iterator[OpenReviewItem]:
    """Yield the item about a layer that an agent claims, unless the user gave one.

    The item's id is made of the question's entry and not of the entry's present id, so that an answer still applies
    when that id changes.
    """
    if entry.layer is None or entry.layer.protected:
        return
    layer = Layer(question.target)
    text = f"An agent wants this entry in the layer {layer.value}; it was stored as {entry.layer.value}."
    identity = item_id(role, ReviewKind.CLAIM, question.entry, layer.value, entry.content_digest)
    yield OpenReviewItem(
        identity, role, ReviewKind.CLAIM, question.at, text, (entry.title,), LayerClaim(entry.id, layer)
    )


def _superseded_items(
    role: Role, question: Question, entry: EntrySummary, entries: Mapping[str, EntrySummary]
) -> Iterator[OpenReviewItem]:
    """Yield an item for each entry that another one claims to replace, or one item if there is no such entry."""
    others = [other for other in entries.values() if other.normalized_title == question.target and other.id != entry.id]
    for other in others:
        reason = _not_replaced_reason(other, question)
        text = f"{entry.title!r} ({entry.id}) claims to replace this entry, which was kept because {reason}."
        identity = item_id(
            role, ReviewKind.SUPERSEDES, question.entry, entry.content_digest, other.id, other.content_digest
        )
        yield OpenReviewItem(
            identity, role, ReviewKind.SUPERSEDES, question.at, text, (other.title,), SupersededEntry(other.id)
        )
    if not others and question.problem == SupersedeProblem.NONE:
        text = f"This entry claims to replace {question.target!r}, but no entry has that title."
        identity = item_id(role, ReviewKind.SUPERSEDES, question.entry, question.target)
        yield OpenReviewItem(identity, role, ReviewKind.SUPERSEDES, question.at, text, (entry.title,), Information())


def _not_replaced_reason(other: EntrySummary, question: Question) -> str:
    if other.layer is None or other.layer.protected:
        return f"it is {other.layer.value if other.layer else 'of an unknown layer'}"
    return _NOT_REPLACED_REASONS.get(question.problem, "it was added later")
