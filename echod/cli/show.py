"""`echod show`: what is in memory. Of projects their roles, of a role its entries, of an entry its text and history."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import Lookout, look_out
from echod.cli.by_hand import Commons, Place, stores_meant
from echod.cli.find import Archived, Found, anywhere, archived_of, global_roles
from echod.cli.shell import Shell
from echod.cli.show_text import entry_screen, glance_screen, memory_screen, role_screen
from echod.cli.upkeep import known_facts
from echod.clock import local_day
from echod.contract.commands import ArchivedText, EntryHistory, JobTouch, ShownEntry, ShownRole, ShowReport
from echod.contract.status import to_json
from echod.errors import EchodError, UsageError
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.policy import History
from echod.memory.policy.scoring import document_lines, entry_lines
from echod.store.layout import Role, Store, commons_of, findings_of, roles_of


class _Role(NamedTuple):
    """A role and the entries of its memory file."""

    info: ShownRole
    entries: tuple[ShownEntry, ...]


def show(shell: Shell, what: str | None, place: Place, *, as_json: bool) -> None:
    """Print what is in memory.

    Args:
        shell: where the command was called.
        what: a project, a role, or an entry; None: the current directory's project, else all.
        place: where the role or entry is meant.
        as_json: for scripts.

    Raises:
        UsageError: nothing of that name is there.
        EchodError: it cannot be read.
    """
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        if what is not None and not isinstance(place, Commons) and _is_path(shell, what):
            if place is not None:
                raise UsageError("Name one project: echod show PATH, or echod show ROLE|ENTRY PATH.")
            place, what = Path(what), None
        there = _roles_at(shell, lookout, place)
        if what is None:
            roles = [_role(lookout, role) for role in there]
            report = ShowReport(_entries(roles), tuple(role.info for role in roles))
            text = memory_screen(report) if isinstance(place, Commons) else glance_screen(report.roles)
        elif named := [role for role in there if role.name == what]:
            roles = [_role(lookout, role) for role in named]
            report = ShowReport(_entries(roles), tuple(role.info for role in roles))
            text = "\n\n".join(role_screen(role.info, role.entries) for role in roles)
        else:
            report = _of_entry(shell, lookout, anywhere(shell, lookout, place, what))
            text = entry_screen(report, shell.now())
    click.echo(to_json(report) if as_json else text)


def _roles_at(shell: Shell, lookout: Lookout, place: Place) -> tuple[Role, ...]:
    if isinstance(place, Commons):
        return global_roles(lookout)
    stores: Sequence[Store] = stores_meant(shell, place) or lookout.roster().stores
    return tuple(role for store in stores for role in roles_of(store))


def _is_path(shell: Shell, what: str) -> bool:
    """Whether a project is meant. A bare name is a path only where it leads to a project, and no id is that long."""
    if what in (".", "..", "~") or os.sep in what:
        return True
    return any(shell.stores(shell.cwd / what))


def _entries(roles: Sequence[_Role]) -> tuple[ShownEntry, ...]:
    return tuple(entry for role in roles for entry in role.entries)


def _role(lookout: Lookout, role: Role) -> _Role:
    limit = lookout.line_limit(role.store.project) if commons_of(role.store) is None else None
    try:
        document = parse(lookout.reader.peek(role).memory.text)
        archived, findings = sum(len(one.copies) for one in archived_of(role)), len(findings_of(role))
    except (EchodError, OSError) as error:
        problem = str(error) if isinstance(error, EchodError) else f"It cannot be listed: {error.strerror}."
        return _Role(ShownRole(role.store.key, role.name, None, limit, 0, {}, None, None, 0, 0, problem), ())
    if not isinstance(document, Document):
        reason = document.reason
        return _Role(
            ShownRole(role.store.key, role.name, None, limit, 0, {}, None, None, findings, archived, reason), ()
        )
    entries = tuple(
        _shown(role, own, block)
        for own, block in zip(entry_ids(role.name, document), document.blocks, strict=True)
        if own is not None
    )
    layers: dict[str, int] = {}
    for entry in entries:
        layers[entry.layer or "unknown"] = layers.get(entry.layer or "unknown", 0) + 1
    days = sorted(entry.date for entry in entries if entry.date)
    info = ShownRole(
        store=role.store.key,
        name=role.name,
        lines=document_lines(document),
        limit=limit,
        entries=len(entries),
        layers=layers,
        oldest=days[0] if days else None,
        newest=days[-1] if days else None,
        findings=findings,
        archived=archived,
    )
    return _Role(info, entries)


def _shown(role: Role, identity: str, block: Block) -> ShownEntry:
    entry = block.entry
    assert entry is not None  # noqa: S101  it has an id
    return ShownEntry(
        id=identity,
        role=role.name,
        layer=entry.layer and entry.layer.value,
        title=entry.title,
        date=_iso(entry.heading_date),
        confidence=entry.confidence,
        verified=_iso(entry.verified or entry.heading_date),
        lines=entry_lines(block.text),
        form=entry.form.value,
        store=role.store.key,
    )


def _of_entry(shell: Shell, lookout: Lookout, found: Found | Archived) -> ShowReport:
    role, care = found.role, lookout.care(found.role.store.project)
    block = found.block if isinstance(found, Found) else None
    memory = found.document if isinstance(found, Found) else None
    facts = known_facts(lookout, role, care, local_day(shell.now()), memory)
    history = facts.histories.get(found.id, History())
    copies = next((one.copies for one in archived_of(role) if one.id == found.id), ())
    told = EntryHistory(
        id=found.id,
        store=role.store.key,
        role=role.name,
        text=None if block is None else block.text,
        first_seen=_iso(history.first_seen),
        references=history.references,
        last_reference=_iso(history.last_reference),
        pinned=_iso(facts.pinned.get(found.id)),
        jobs=tuple(_touches(lookout, role, found.id)),
        archived=tuple(
            ArchivedText(
                kept.file, kept.entry.day.isoformat(), kept.entry.rule, kept.entry.job, kept.entry.redacted,
                kept.entry.text,
            )
            for kept in copies
        ),
    )  # fmt: skip
    return ShowReport(() if block is None else (_shown(role, found.id, block),), entry=told)


def _touches(lookout: Lookout, role: Role, identity: str) -> Iterator[JobTouch]:
    """The commits that wrote this entry, oldest first, as far as the journal still has what they wrote."""
    for made in lookout.reader.rewrites(role):
        before, after = (_text(role, identity, document) for document in (made.before, made.after))
        if before == after:
            continue
        did = "added" if before is None else "removed" if after is None else "changed"
        yield JobTouch(made.done.job, made.done.kind, made.done.at, did)


def _text(role: Role, identity: str, document: Document) -> str | None:
    pairs = zip(entry_ids(role.name, document), document.blocks, strict=True)
    return next((block.text.rstrip() for own, block in pairs if own == identity), None)


def _iso(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
