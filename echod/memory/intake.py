"""The one gate through which text that agents wrote comes in: read, rid of secrets, then handed to the policies.

Whatever is stored later (entries, the kept copy of a findings file, a quarantined one) comes from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

from echod.memory.document import Unreadable
from echod.memory.findings import Finding, read_findings
from echod.memory.redact import find_email_in_evidence, redact


@dataclass(frozen=True, slots=True)
class FindingsFile:
    """A findings file as it was found.

    Attributes:
        name: the file's name in its role.
        agent: who wrote it (the name without `-findings.md`).
        data: its bytes.
        date: the local day on which it was last changed.
    """

    name: str
    agent: str
    data: bytes
    date: date


@dataclass(frozen=True, slots=True)
class Taken:
    """What a findings file says, and its text to keep; neither holds a secret."""

    file: FindingsFile
    findings: tuple[Finding, ...]
    kept: bytes


@dataclass(frozen=True, slots=True)
class Rejected:
    """A findings file that cannot be understood, why in a sentence, and its bytes to keep."""

    file: FindingsFile
    reason: str
    kept: bytes


def take_in(file: FindingsFile, today: date) -> Taken | Rejected:
    """Read a findings file and redact all of it. A file from the future counts as today's."""
    # What is no UTF-8 is kept byte for byte too, apart from the secrets in it.
    text = redact(file.data.decode("utf-8", "surrogateescape")).text
    kept = text.encode("utf-8", "surrogateescape")
    agent = redact(file.agent).text
    found = read_findings(kept, agent=agent, file_date=min(file.date, today))
    if isinstance(found, Unreadable):
        return Rejected(file, found.reason, kept)
    findings = []
    for finding in found:
        clean, addresses = _without_addresses(finding)
        findings.append(clean)
        for address, marker in addresses:
            kept = kept.replace(address.encode(), marker.encode())
    return Taken(file, tuple(findings), kept)


def _without_addresses(finding: Finding) -> tuple[Finding, list[tuple[str, str]]]:
    """The finding without e-mail addresses in its evidence, unless it is about e-mail; and what they became."""
    if not finding.evidence or "@" not in finding.evidence:
        return finding, []
    line = f"evidence: {finding.evidence}"
    spans = find_email_in_evidence(f"{line}\n\n{finding.title}\n\n{finding.text}")
    addresses = [(line[span.start : span.end], f"[REDACTED:{span.kind}]") for span in spans if span.end <= len(line)]
    evidence = finding.evidence
    for address, marker in addresses:
        evidence = evidence.replace(address, marker)
    return replace(finding, evidence=evidence), addresses
