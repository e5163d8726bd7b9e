"""Turn a learning that an agent reported through a tool into a findings file of its own.

From there it goes the way of all findings: redacted, compared with what is known, and consolidated between workflows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final, NamedTuple

from echod.memory.compose import ComposeError, compose_entry
from echod.memory.findings import DEFAULT_LAYER, Finding
from echod.memory.model import DEFAULT_CONFIDENCE, Form
from echod.memory.redact import redact, redact_entry

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
