"""Read findings files and redact them, before any policy or store sees their text.

All text that is stored later (entries, the archived copy of a findings file, a quarantined one) comes from here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date

from echod.memory.findings import Finding, read_findings
from echod.memory.model import Unreadable
from echod.memory.redact import find_email_in_evidence, redact, redact_bytes

# Also a word without "@", so that no word is scanned twice.
_EMAIL_OR_WORD = re.compile(r"[A-Za-z0-9._%+-]++(?:@[A-Za-z0-9.-]+)?")
_EMAIL_MARKER = "[REDACTED:email]"
# The line limit of a findings file. A file full of tiny findings would take minutes and a gigabyte to parse.
_MAX_LINES = 200_000


@dataclass(frozen=True, slots=True)
class FindingsFile:
    """A findings file as it is on disk."""

    name: str  # the file's name in its role
    agent: str  # the agent that wrote it (the name without `-findings.md`)
    data: bytes
    date: date  # the local day on which it was last changed
    # A part of it was consumed before; known findings in it are not counted as duplicates.
    partly_consumed: bool = False


@dataclass(frozen=True, slots=True)
class AcceptedFile:
    """The findings of a file, and its text to archive, both without secrets."""

    file: FindingsFile
    findings: tuple[Finding, ...]
    redacted_data: bytes


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A findings file that cannot be read, the reason in a sentence, and its bytes to quarantine."""

    file: FindingsFile
    reason: str
    redacted_data: bytes


def read_and_redact(file: FindingsFile, today: date) -> AcceptedFile | RejectedFile:
    """Read a findings file and redact all of it. A file dated in the future counts as today's."""
    redacted_data = redact_bytes(file.data)
    lines = redacted_data.count(b"\n")
    if lines > _MAX_LINES:
        reason = f"It has {lines:,} lines, more than the limit of {_MAX_LINES:,}. Split it."
        return RejectedFile(file, reason, redacted_data)
    agent = redact(file.agent).text
    findings = read_findings(redacted_data, agent=agent, file_date=min(file.date, today))
    if isinstance(findings, Unreadable):
        return RejectedFile(file, findings.reason, redacted_data)
    cleaned = [_redact_addresses(finding) for finding in findings]
    addresses = frozenset[str]().union(*(removed for _, removed in cleaned))
    redacted_data = _mask_addresses(redacted_data.decode(), addresses).encode()
    return AcceptedFile(file, tuple(finding for finding, _ in cleaned), redacted_data)


def _redact_addresses(finding: Finding) -> tuple[Finding, frozenset[str]]:
    """Return the finding without e-mail addresses in its evidence, unless it is about e-mail, and those addresses."""
    if not finding.evidence or "@" not in finding.evidence:
        return finding, frozenset()
    line = f"evidence: {finding.evidence}"
    spans = find_email_in_evidence(f"{line}\n\n{finding.title}\n\n{finding.text}")
    addresses = frozenset(line[span.start : span.end] for span in spans if span.end <= len(line))
    return replace(finding, evidence=_mask_addresses(finding.evidence, addresses)), addresses


def _mask_addresses(text: str, addresses: frozenset[str]) -> str:
    """Return the text with a marker for each of these addresses, in one pass regardless of their number."""

    def mask(match: re.Match[str]) -> str:
        address = match[0].rstrip("-") if "@" in match[0] else ""
        while address and address not in addresses:
            address = address.rpartition(".")[0]  # the text behind an address may look like a part of it
        return _EMAIL_MARKER + match[0][len(address) :] if address else match[0]

    return _EMAIL_OR_WORD.sub(mask, text) if addresses else text
