"""Rewrite an entry of a project for all projects of the user, and read where one comes from.

    ## Inscribed — title (2026-11-20)

    **Source**: `elevated:my-project@reviewer`
    **Domain**: backend

    - The learning.

Whatever its layer was, the entry becomes inscribed, as other writers of the global memory do it. Secrets are removed.

The three versions are the pack as it was installed (the base), the file as it is, and the new pack. An entry of a new
version has another date and source, so entries are first matched by their titles. The rest is an ordinary merge.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.compose import ComposeError, with_entries
from echod.memory.document import parse, parse_block
from echod.memory.findings import Finding
from echod.memory.identity import align, block_content, entry_ids, normalize_title
from echod.memory.merge import MergeFailure, merge
from echod.memory.model import DEFAULT_CONFIDENCE, Block, Document, Entry, Field, Form, Layer, Unreadable, full_title
from echod.memory.prompt_injection import find_injection
from echod.memory.redact import redact, redact_entry
from echod.memory.text import without_full_stop

_ELEVATED_SOURCE = lazy_pattern(r"elevated:(?P<project>.+)@(?P<role>[^@]*)")
_PACK_SOURCE = lazy_pattern(r"doc-pack:(?P<stack>[^@\s]+)@(?P<version>\S+)")
_DEFAULT_DOMAIN = "general"

GLOBAL_ROLE = ""
"""The role of the global memory file in ids. It is empty, because the file is in no role's directory."""


class ProjectProvenance(NamedTuple):
    """The user elevated the entry from the role of a project."""

    project: str
    role: str


class PackProvenance(NamedTuple):
    """The entry came with a doc pack."""

    stack: str
    version: str


Provenance = ProjectProvenance | PackProvenance | None
"""None: its source names neither."""


def read_provenance(entry: Entry) -> Provenance:
    """Return where an entry comes from."""
    source = entry.source or ""
    if match := _ELEVATED_SOURCE.fullmatch(source):
        return ProjectProvenance(match["project"], match["role"])
    if match := _PACK_SOURCE.fullmatch(source):
        return PackProvenance(match["stack"], match["version"])
    return None


def elevated_source(project: str, role: str) -> str:
    """Return the source of an entry that is elevated from a role of the project of that name."""
    return f"elevated:{re.sub(r'[^A-Za-z0-9._-]+', '-', project) or 'project'}@{role}"


def entry_domain(entry: Entry) -> str:
    """Return the entry's domain in lower case; `general` where it names none."""
    return metadata_value(entry, "domain").lower() or _DEFAULT_DOMAIN


def metadata_value(entry: Entry, name: str) -> str:
    """Return the first value of a metadata line of that name; empty without one."""
    return next((field.value.strip() for field in entry.fields if field.name == name), "")


def is_from_pack(entry: Entry | None, stack: str) -> bool:
    """Return whether a pack of that name brought the entry."""
    provenance = read_provenance(entry) if entry else None
    return isinstance(provenance, PackProvenance) and provenance.stack == stack


def check_pack(data: bytes, stack: str) -> tuple[bytes | None, tuple[str, ...]]:
    """Return the text of a doc pack without secrets, and its faults, each to follow the path of the file.

    The text is None if the pack is unusable.
    """
    document = parse(data)
    if not isinstance(document, Document):
        return None, (f"is unreadable: {document.reason}",)
    entries = [block for block in document.blocks if block.entry]
    if not entries:
        return None, ("has no entries.",)
    faults = []
    redaction = redact(data.decode())
    if redaction.spans:
        faults.append("contains secrets, which are removed when it is installed.")
    if foreign := sum(not is_from_pack(block.entry, stack) for block in entries):
        faults.append(f"has {foreign} of {len(entries)} entries that do not name doc-pack:{stack} as source.")
    faults += [
        f"has an entry {block.entry.title!r} that reads like an instruction to agents ({phrase})."
        for block in entries
        if block.entry and (phrase := find_injection(block.text)) is not None
    ]
    return redaction.text.encode(), tuple(faults)


def domains_by_frequency(document: Document) -> tuple[str, ...]:
    """Return the domains of the entries, the most frequent first."""
    counts = Counter(entry_domain(block.entry) for block in document.blocks if block.entry)
    return tuple(domain for domain, _ in counts.most_common())


class ElevationRequest(NamedTuple):
    """An entry to elevate: the block, its project and role, the domain it is for, and the local day."""

    block: Block
    project: str
    role: str
    domain: str
    day: date


class NotEligible(NamedTuple):
    """Why an entry is not elevated: a sentence without its full stop."""

    reason: str


class AlreadyElevated(NotEligible):
    """The global memory contains the entry."""


class ElevationResult(NamedTuple):
    """The global memory with the entry at its end. `redacted`: a secret was removed from the entry."""

    document: Document
    id: str
    redacted: bool


def check_eligibility(block: Block) -> NotEligible | None:
    """Return why an entry may not be elevated to any global memory; None if it may."""
    if block.entry is None:
        return NotEligible("it is not an entry")
    if read_provenance(block.entry) is not None:
        return NotEligible("it came from the global memory itself")
    if block.entry.layer is Layer.OBSERVATIONS:
        return NotEligible("it is an observation, which is not confirmed yet; raise it first with echod raise")
    if block.entry.layer is None:
        return NotEligible("its layer is unknown")
    return None


def elevate_entry(memory: Document, request: ElevationRequest) -> ElevationResult | NotEligible:
    """Write the entry at the end of the global memory; everything else in it reads as before."""
    if (reason := check_eligibility(request.block)) is not None:
        return reason
    redaction = redact_entry(request.block.text)
    block = parse_block(redaction.text)
    if block.entry is None:
        return NotEligible("without its secrets it is not a valid entry")
    finding = _build_finding(block, block.entry, request)
    if (existing := _find_existing(memory, block, finding)) is not None:
        return AlreadyElevated(f"it is in the global memory already, as {entry_ids(GLOBAL_ROLE, memory)[existing]}")
    try:
        extended = with_entries(memory, [finding], Form.LAYER_HEADING)
    except ComposeError:
        return NotEligible("a code block or comment in the global memory is never closed and would swallow it")
    if isinstance(extended, Unreadable):
        return NotEligible(without_full_stop(extended.reason))
    return ElevationResult(extended, entry_ids(GLOBAL_ROLE, extended)[-1] or "", bool(redaction.spans))


def _build_finding(block: Block, entry: Entry, request: ElevationRequest) -> Finding:
    category = metadata_value(entry, "category")
    return Finding(
        key=_fingerprint(block),
        title=entry.title,
        kind=entry.kind,
        heading_date=request.day,
        layer=Layer.INSCRIBED,
        claimed_layer=None,
        confidence=DEFAULT_CONFIDENCE if entry.confidence is None else entry.confidence,
        source=elevated_source(request.project, request.role),
        evidence=entry.evidence,
        verified=entry.verified or entry.heading_date or request.day,
        supersedes=None,
        fields=(*((("category", category),) if category else ()), ("domain", request.domain)),
        text=block.body,
    )


def _find_existing(memory: Document, block: Block, finding: Finding) -> int | None:
    """Return the position of an entry with the same words, or with the same title from the same role and project."""
    new_id = (normalize_title(full_title(finding.kind, finding.title)), finding.source)
    for position, existing in enumerate(memory.blocks):
        if (entry := existing.entry) is None:
            continue
        if (normalize_title(entry.title), entry.source) == new_id or _fingerprint(existing) == _fingerprint(block):
            return position
    return None


def _fingerprint(block: Block) -> str:
    """Return a digest of an entry's content, independent of case, blanks and bullets."""
    words = "".join((block.body if block.entry else block.text).casefold().split()).lstrip("-*+")
    return hashlib.sha256(words.encode()).hexdigest()


class UpgradeResult(NamedTuple):
    """The file with the new version."""

    data: bytes
    edited: tuple[str, ...]  # titles of entries that the user added or changed and that keep that state
    deleted: tuple[str, ...]  # titles of entries that the user removed and that stay removed
    # Titles of entries of the new version that gave way to the user's edit of the same lines.
    overridden: tuple[str, ...]


def upgrade_pack(base: Document | None, current: Document, new: Document, stack: str) -> UpgradeResult | MergeFailure:
    """Put `new` in the place of `base`, the pack as it was installed, in `current`.

    If the base is unknown (None), every entry that names the pack as its source counts as unchanged, and everything
    else as the user's own.
    """
    if base is None:
        pack_blocks = tuple(block for block in current.blocks if is_from_pack(block.entry, stack))
        base = current.with_blocks(pack_blocks)
    successors = _pack_blocks_by_title(new, stack)
    pairs = align(base.blocks, current.blocks)
    replaced = {title: block for title, block in _pack_blocks_by_title(base, stack).items() if title in successors}
    aligned_base = _with_new_headings(base, {i: i for i in range(len(base.blocks))}, base.blocks, replaced, successors)
    aligned_current = _with_new_headings(current, {j: i for i, j in pairs.items()}, base.blocks, replaced, successors)
    merged = merge(aligned_base, aligned_current, new)
    if isinstance(merged, MergeFailure):
        return merged
    base_contents = {block_content(block) for block in aligned_base.blocks}
    edited = [block for block in aligned_current.blocks if block_content(block) not in base_contents]
    deleted = [block for i, block in enumerate(aligned_base.blocks) if i not in pairs]
    upgraded = parse(merged.data)
    present_titles = set(map(_block_title, upgraded.blocks)) if isinstance(upgraded, Document) else set()
    return UpgradeResult(
        data=merged.data,
        edited=tuple(map(_block_title, edited)),
        deleted=tuple(title for title in map(_block_title, deleted) if title not in present_titles),
        overridden=tuple(_block_title(parse_block(text)) for text in merged.overridden),
    )


def _pack_blocks_by_title(document: Document, stack: str) -> Mapping[str, Block]:
    """Return the pack's entries by title, leaving out titles that several entries share."""
    named = [(normalize_title(b.entry.title), b) for b in document.blocks if b.entry and is_from_pack(b.entry, stack)]
    counts = Counter(title for title, _ in named)
    return {title: block for title, block in named if counts[title] == 1}


def _with_new_headings(
    document: Document,
    base_positions: Mapping[int, int],
    base: Sequence[Block],
    replaced: Mapping[str, Block],
    successors: Mapping[str, Block],
) -> Document:
    """Return the document with the new version's heading and source where they were those of the installed one."""
    blocks = list(document.blocks)
    for position, origin in base_positions.items():
        old = base[origin]
        title = normalize_title(old.entry.title) if old.entry else ""
        if replaced.get(title) is old:
            blocks[position] = _with_new_heading(blocks[position], old, successors[title])
    return document.with_blocks(blocks)


def _with_new_heading(block: Block, old: Block, new: Block) -> Block:
    text = block.text
    old_source, source = _source_field(old), _source_field(block)
    new_source = _source_field(new)
    if old_source and source and new_source and source.value == old_source.value:
        text = text[: source.span.start] + new_source.value + text[source.span.end :]
    heading, newline, rest = text.partition("\n")
    if heading.rstrip() == old.text.partition("\n")[0].rstrip():
        ending = "\r" if heading.endswith("\r") else ""
        text = new.text.partition("\n")[0].rstrip() + ending + newline + rest
    return parse_block(text)


def _source_field(block: Block) -> Field | None:
    entry = block.entry
    return next((field for field in entry.fields if field.name == "source"), None) if entry else None


def _block_title(block: Block) -> str:
    return block.entry.title if block.entry else block.text.strip().partition("\n")[0].lstrip("# ")
