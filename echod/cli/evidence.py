"""Check the evidence of one entry for a command that shows the entry, and format evidence for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from echod.app.context import ReadContext
from echod.cli.output import sanitize, wrap
from echod.cli.targets import MemoryMatch
from echod.contract.entries import ChangedEvidence
from echod.contract.search import EvidenceInfo
from echod.evidence.entries import EntryEvidence, check_document
from echod.evidence.verifier import EvidenceVerifier
from echod.state.fingerprints import read_bases
from echod.store.layout import global_root


def evidence_infos(found: EntryEvidence) -> tuple[EvidenceInfo, ...]:
    """Return the evidence of an entry as JSON has it."""
    return tuple(EvidenceInfo(checked.cite, checked.state.value, checked.at) for checked in found.citations)


def evidence_of(read_context: ReadContext, match: MemoryMatch, now: float) -> tuple[EvidenceInfo, ...]:
    """Return the states of an entry's citations. Nothing is recorded; an entry of no project has none."""
    role = match.role
    if global_root(role.store) is not None:
        return ()
    bases = read_bases(read_context.fingerprints, role.store.key, role.name)
    verifier = EvidenceVerifier(role.store.project, now)
    try:
        return evidence_infos(check_document(verifier, role.name, match.document, bases, only=match.id)[0])
    finally:
        verifier.close()


def changed_evidence_of(read_context: ReadContext, match: MemoryMatch, now: float) -> tuple[ChangedEvidence, ...]:
    """Return the states of an entry's citations, each with the commit that changed the cited lines."""
    role = match.role
    if global_root(role.store) is not None:
        return ()
    bases = read_bases(read_context.fingerprints, role.store.key, role.name)
    verifier = EvidenceVerifier(role.store.project, now)
    try:
        (found,) = check_document(verifier, role.name, match.document, bases, only=match.id)
        listed = []
        for checked in found.citations:
            base = found.bases.get(checked.cite)
            change = base and base.fingerprint and verifier.find_change(base.fingerprint, checked.state)
            listed.append(
                ChangedEvidence(
                    checked.cite, checked.state.value, checked.at, *((change.commit, change.at) if change else ())
                )
            )
        return tuple(listed)
    finally:
        verifier.close()


def evidence_lines(evidence: Sequence[EvidenceInfo | ChangedEvidence]) -> Iterator[str]:
    """Format citations with their states, and where those that moved or changed are now."""
    for info in evidence:
        now = f", now {sanitize(info.at)}" if info.at and info.state in ("moved", "changed") else ""
        commit = f", by commit {info.commit[:12]}" if isinstance(info, ChangedEvidence) and info.commit else ""
        yield wrap(f"{sanitize(info.cite)}{now}{commit}", indent=f"  {info.state:<8} ")
