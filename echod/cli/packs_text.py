"""What `echod packs` says to people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from echod.cli.text import count, paragraph, plain
from echod.contract import PackInfo
from echod.jobs.packing import Planned, pristine_name
from echod.memory.packs.renewal import Renewed
from echod.packs.check import Offer, PackState

_SHOWN_TITLES = 4


def told(state: PackState, planned: Planned, *, dry_run: bool, installs: bool) -> Iterator[str]:
    """What was done to a pack, or would be, and what became of a person's edits."""
    before, after = state.installed.manifest, planned.manifest
    if planned.memory == state.installed.memory:
        yield paragraph(" ".join(_nothing_new(state, planned, installs=installs)), hang="  ")
        return
    verb = "install" if before is None else "update"
    said = f"Would {verb}" if dry_run else f"{verb.capitalize()}{'ed' if verb == 'install' else 'd'}"
    change = f"v{plain(after.version)}"
    if before is not None and before.version != after.version:
        change = f"v{plain(before.version)} to {change}"
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


def _nothing_new(state: PackState, planned: Planned, *, installs: bool) -> Iterator[str]:
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
    if manifest.checked_at != (state.installed.manifest.checked_at if state.installed.manifest else None):
        yield "It was looked for something newer, so that it counts as fresh again."


def _titles(titles: Sequence[str]) -> str:
    shown = ", ".join(f'"{plain(title)}"' for title in titles[:_SHOWN_TITLES])
    more = len(titles) - _SHOWN_TITLES
    return f"{shown} and {more} more" if more > 0 else shown


def listed(info: PackInfo) -> Iterator[str]:
    """A pack's line in `echod packs list`."""
    if info.installed:
        at = f", {info.installed_at[:10]}" if info.installed_at else ""
        version = f"v{plain(info.version)}" if info.version else "version not known"
        newer = f"; v{plain(info.available)} available" if info.available and info.offer == Offer.VERSION else ""
        newer = "; another text available" if info.offer == Offer.TEXT else newer
        yield f"  {info.name:<15} ✓ installed ({version}{plain(at)}){newer}"
    else:
        yield f"  {info.name:<15} ○ not installed"


def stands(info: PackInfo, days: int) -> Iterator[str]:
    """A pack's lines in `echod packs status`."""
    version = f"v{plain(info.version)}" if info.version else "-"
    age = "" if info.installed_days is None else f"installed {count(max(0, info.installed_days), 'day')} ago"
    state = {True: f"⚠ stale (> {days} days)", False: "✓ fresh", None: "? age not known"}[info.stale]
    yield f"  {info.name:<15} {version:<9} {age:<24} {state}"
    if info.stale and (info.updated_days or 0) > days:
        yield f"      its text was last worked on {count(info.updated_days or 0, 'day')} ago"
    if info.edited:
        yield "      changed by hand since it was installed; an update keeps that"
    if info.offer in (Offer.VERSION, Offer.TEXT):
        what = f"v{plain(info.available or '')}" if info.offer == Offer.VERSION else "another text of this version"
        yield f"      {what} is there: echod packs update {info.name}"
    elif info.stale:
        yield f"      have it looked for something newer: echod packs update {info.name}"
