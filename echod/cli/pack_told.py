"""What is said of a pack that was installed or updated: how it is now, and what became of a person's edits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from echod.cli.text import paragraph, plain
from echod.jobs.packs import Planned, pristine_name
from echod.memory.packs.upgrade import Renewed
from echod.packs.check import Offer, PackState

_SHOWN_TITLES = 4


def told(state: PackState, planned: Planned, *, dry_run: bool, installs: bool) -> Iterator[str]:
    """What was done to a pack, or would be, and what became of a person's edits."""
    before, after = state.installed.manifest, planned.manifest
    same_text = planned.memory == state.installed.memory
    if same_text and (before is None or before.version == after.version):
        yield paragraph(" ".join(_nothing_new(state, planned, dry_run=dry_run, installs=installs)), hang="  ")
        return
    verb = "install" if before is None else "update"
    said = f"Would {verb}" if dry_run else f"{verb.capitalize()}{'ed' if verb == 'install' else 'd'}"
    change = f"v{plain(after.version)}"
    if before is not None and before.version != after.version:
        change = f"v{plain(before.version)} to {change}{', the text stays the same' if same_text else ''}"
    elif before is not None:
        change += ", another text of the same version" if state.installed.memory is not None else ""
    yield paragraph(f"{said} the doc pack {state.stack} ({change}).", hang="  ")
    if planned.renewed is not None:
        yield from _about_edits(planned, planned.renewed)


def _about_edits(planned: Planned, renewed: Renewed) -> Iterator[str]:
    if not planned.base_known:
        yield paragraph(
            "Which text had been installed is not known: what does not name the pack as its source was kept, all "
            "else replaced. The file as it was is in the pack's archive.",
            indent="  ",
        )
    if renewed.kept:
        yield paragraph(f"Your changes were kept: {_titles(renewed.kept)}.", indent="  ")
    if renewed.removed:
        yield paragraph(f"What you had taken out stays out: {_titles(renewed.removed)}.", indent="  ")
    if renewed.gave_way and planned.manifest.sha256:
        where = pristine_name(planned.manifest.sha256)
        text = f"Of the new version this gave way to your changes: {_titles(renewed.gave_way)}. It stands in {where}."
        yield paragraph(text, indent="  ")


def _nothing_new(state: PackState, planned: Planned, *, dry_run: bool, installs: bool) -> Iterator[str]:
    manifest = planned.manifest
    version = f"v{plain(manifest.version)}"
    yield f"The doc pack {state.stack} is {'installed already' if installs else 'already up to date'} ({version})."
    if state.edited:
        yield "Your changes in it stay."
    match state.offer:
        case Offer.OLDER if state.pack is not None:
            yield f"The newest in a registry is v{state.pack.listed.version}, which is older."
        case Offer.ABSENT:
            yield "No registry has it any more."
        case Offer.UNKNOWN:
            yield "Its text is another one than the registry's; to have that, remove the pack and install it."
        case _:
            pass
    if not manifest.same_install(state.installed.manifest):
        yield f"Its manifest {'would be' if dry_run else 'was'} put right."
    if manifest.checked_at != (state.installed.manifest.checked_at if state.installed.manifest else None):
        yield "It was looked for something newer, so that it counts as fresh again."


def _titles(titles: Sequence[str]) -> str:
    shown = ", ".join(f'"{plain(title)}"' for title in titles[:_SHOWN_TITLES])
    more = len(titles) - _SHOWN_TITLES
    return f"{shown} and {more} more" if more > 0 else shown
