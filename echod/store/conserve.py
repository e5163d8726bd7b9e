"""Holding a plan to the law of conservation before anything is staged; the law itself is in `memory.conservation`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from echod.memory.alignment import content
from echod.memory.conservation import Broken, Change, missing_findings, redaction_of, violations
from echod.memory.model import Document, Unreadable
from echod.memory.redact import redact, redact_entry
from echod.store.errors import Refused
from echod.store.plan import Plan, PlannedConsume, PlannedWrite

Reader = Callable[[bytes], Document | Unreadable]


def hold(plan: Plan, read: Reader, *, asked: bool) -> None:
    """Refuse a plan that would lose something.

    Args:
        plan: what a job wants.
        read: how contents become documents.
        asked: a person asked for it.

    Raises:
        Refused: the sentence names the file and the block.
    """
    rewritten = [w for w in plan.writes if w.before is not None]
    changes = [(w.path, _change(w, read)) for w in rewritten]
    archived = [text for _, text in plan.appends] + [c.kept for c in plan.consumes]
    archived += [w.after for w in plan.writes if w.before is None]
    texts = [text.decode(errors="replace") for text in archived]
    found = violations([change for _, change in changes], texts, redacted=_redacted, asked=asked)
    if found:
        raise _refusal(plan, found[0].broken, found[0].heading)
    posts = [change.after for _, change in changes] + [
        d for w in plan.writes if isinstance(d := read(w.after), Document)
    ]
    standing = {content(block) for document in posts for block in document.blocks} if plan.consumes else set()
    for consumed in plan.consumes:
        _hold_findings(plan, consumed, read, standing)


def _change(write: PlannedWrite, read: Reader) -> Change:
    before, after = read(write.before or b""), read(write.after)
    if isinstance(before, Unreadable):
        raise Refused(f"{write.path} cannot be read, so it is not written over. {before.reason}")
    if isinstance(after, Unreadable):
        raise Refused(f"{write.path} would become unreadable, so it is not written. {after.reason}")
    return Change(before, after)


def _hold_findings(plan: Plan, consumed: PlannedConsume, read: Reader, standing: set[str]) -> None:
    kept = consumed.kept.decode(errors="surrogateescape")
    if redaction_of(kept, consumed.before.decode(errors="surrogateescape")):
        return
    document = read(consumed.before)
    if isinstance(document, Unreadable):
        raise _refusal(plan, Broken.LOST, consumed.path)
    blocks = [b for b in document.blocks if content(b) not in standing]
    found = missing_findings(blocks, kept, redacted=_redacted)
    if found or not _stands(document.preamble, kept):
        raise _refusal(plan, Broken.LOST, found[0].heading if found else consumed.path)


def _stands(preamble: str, kept: str) -> bool:
    return any(form.strip() in kept for form in (preamble, *_redacted(preamble)))


def _redacted(text: str) -> Iterable[str]:
    yield redact(text).text
    yield redact_entry(text).text


def _refusal(plan: Plan, broken: Broken, heading: str) -> Refused:
    return Refused(f"The {plan.kind} job was refused: {heading!r} {broken}. Nothing was changed; please report this.")
