"""Check the evidence of the entries of a memory file, and keep bases and states in the database.

Apart from `verifier`, because this module loads the parser, which a search of indexed entries does without.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import NamedTuple

from echod.evidence.verifier import CheckedCitation, EvidenceVerifier
from echod.memory.evidence.compare import EvidenceState
from echod.memory.evidence.fingerprint import parse_citation
from echod.memory.identity import entry_ids
from echod.memory.knowledge.text import body_references, evidence_references
from echod.memory.model import Document, Entry
from echod.memory.redact import find_secrets
from echod.memory.similarity import files_in
from echod.state.fingerprints import FingerprintStore, StoredBases, StoredFingerprint, read_bases


def entry_citations(entry: Entry, learning: str) -> tuple[str, ...]:
    """Return the files that an entry cites in its evidence and in its learning, each once, without back quotes."""
    references = dict.fromkeys((*evidence_references(entry.evidence or ""), *body_references(learning)))
    return tuple(dict.fromkeys(reference.strip("`") for reference in references if files_in(reference)))


class EntryEvidence(NamedTuple):
    """An entry with its citations. `bases` has what each was compared with."""

    id: str
    title: str
    citations: tuple[CheckedCitation, ...]
    bases: Mapping[str, StoredFingerprint]


def evidence_day(entry: Entry) -> date | None:
    """Return the day at which the evidence of an entry was right: its verification, else its date."""
    days = [day for day in (entry.verified, entry.heading_date) if day is not None]
    return max(days, default=None)


def check_document(
    verifier: EvidenceVerifier,
    role: str,
    document: Document,
    bases: StoredBases,
    *,
    only: str | None = None,
    without: Collection[str] = (),
) -> tuple[EntryEvidence, ...]:
    """Return the evidence of the entries of a file that cite anything; of one entry with `only`, in any case.

    Entries whose ids are in `without` are passed over.
    """
    found = []
    for identity, block in zip(entry_ids(role, document), document.blocks, strict=True):
        if identity is None or identity in without or block.entry is None or only not in (None, identity):
            continue
        cites = entry_citations(block.entry, block.body)
        if not cites and only is None:
            continue
        stored = bases.get(identity, {})
        checked = verifier.check(cites, evidence_day(block.entry), stored)
        found.append(EntryEvidence(identity, block.entry.title, checked.citations, {**stored, **checked.taken}))
    return tuple(found)


def record_new_evidence(
    fingerprints: FingerprintStore, verifier: EvidenceVerifier, store: str, role: str, document: Document
) -> None:
    """Check only the entries of a memory file that have no base yet, and store theirs."""
    bases = read_bases(fingerprints, store, role)
    _record(fingerprints, store, role, bases, check_document(verifier, role, document, bases, without=bases.keys()))


def record_evidence(
    fingerprints: FingerprintStore, verifier: EvidenceVerifier, store: str, role: str, document: Document
) -> tuple[EntryEvidence, ...]:
    """Check the entries of a memory file, and store the bases that are new and the states that differ."""
    bases = read_bases(fingerprints, store, role)
    found = check_document(verifier, role, document, bases)
    _record(fingerprints, store, role, bases, found)
    return found


def _record(
    fingerprints: FingerprintStore, store: str, role: str, bases: StoredBases, found: tuple[EntryEvidence, ...]
) -> None:
    taken: dict[tuple[str, str], StoredFingerprint] = {}
    states: dict[tuple[str, str], str] = {}
    for entry in found:
        for checked in entry.citations:
            base = entry.bases.get(checked.cite)
            if base is None or find_secrets(checked.cite):
                continue  # the database holds no secret, also not as the name of a file
            if base is not bases.get(entry.id, {}).get(checked.cite):
                taken[entry.id, checked.cite] = base._replace(state=checked.state.value)
            elif base.state != checked.state:
                states[entry.id, checked.cite] = checked.state.value
    fingerprints.write_found(store, role, taken, states)


def confirm_evidence(
    fingerprints: FingerprintStore, verifier: EvidenceVerifier, store: str, role: str, entry: EntryEvidence
) -> None:
    """Take the present lines of an entry as its new base, because the user confirmed it. Gone evidence stays so."""
    taken: dict[tuple[str, str], StoredFingerprint] = {}
    for checked in entry.citations:
        place = parse_citation(checked.at or checked.cite)
        if place is None or checked.state is EvidenceState.GONE or find_secrets(checked.cite):
            continue
        base = verifier.take_base(place, None)
        if base.fingerprint is not None:
            taken[entry.id, checked.cite] = base._replace(state=EvidenceState.VALID.value)
    fingerprints.write(store, role, taken)
