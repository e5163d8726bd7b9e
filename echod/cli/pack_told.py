"""What is said of a pack that was installed or updated: how it is now, and what became of a person's edits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from echod.cli.output import sanitize, wrap
from echod.jobs.packs import PackPlan, pristine_name
from echod.memory.packs.upgrade import UpgradeResult
from echod.packs.check import PackState, UpdateStatus

_MAX_SHOWN_TITLES = 4


def describe_update(state: PackState, plan: PackPlan, *, dry_run: bool, is_install: bool) -> Iterator[str]:
    """What was done to a pack, or would be, and what became of a person's edits."""
    before, after = state.installed.manifest, plan.manifest
    same_text = plan.memory == state.installed.memory
    if same_text and (before is None or before.version == after.version):
        yield wrap(" ".join(_unchanged_sentences(state, plan, dry_run=dry_run, is_install=is_install)), hang="  ")
        return
    verb = "install" if before is None else "update"
    verb_text = f"Would {verb}" if dry_run else f"{verb.capitalize()}{'ed' if verb == 'install' else 'd'}"
    change = f"v{sanitize(after.version)}"
    if before is not None and before.version != after.version:
        change = f"v{sanitize(before.version)} to {change}{', the text stays the same' if same_text else ''}"
    elif before is not None:
        change += ", another text of the same version" if state.installed.memory is not None else ""
    yield wrap(f"{verb_text} the doc pack {state.stack} ({change}).", hang="  ")
    if plan.upgrade is not None:
        yield from _edit_lines(plan, plan.upgrade)


def _edit_lines(plan: PackPlan, upgrade: UpgradeResult) -> Iterator[str]:
    if not plan.base_known:
        yield wrap(
            "Which text had been installed is not known: what does not name the pack as its source was kept, all "
            "else replaced. The file as it was is in the pack's archive.",
            indent="  ",
        )
    if upgrade.edited:
        yield wrap(f"Your changes were kept: {_quoted_titles(upgrade.edited)}.", indent="  ")
    if upgrade.deleted:
        yield wrap(f"What you had taken out stays out: {_quoted_titles(upgrade.deleted)}.", indent="  ")
    if upgrade.overridden and plan.manifest.sha256:
        pristine_file = pristine_name(plan.manifest.sha256)
        text = (
            f"Of the new version this gave way to your changes: "
            f"{_quoted_titles(upgrade.overridden)}. It stands in {pristine_file}."
        )
        yield wrap(text, indent="  ")


def _unchanged_sentences(state: PackState, plan: PackPlan, *, dry_run: bool, is_install: bool) -> Iterator[str]:
    manifest = plan.manifest
    version = f"v{sanitize(manifest.version)}"
    yield f"The doc pack {state.stack} is {'installed already' if is_install else 'already up to date'} ({version})."
    if state.edited:
        yield "Your changes in it stay."
    match state.update_status:
        case UpdateStatus.OLDER_VERSION if state.pack is not None:
            yield f"The newest in a registry is v{state.pack.listing.version}, which is older."
        case UpdateStatus.NOT_IN_REGISTRY:
            yield "No registry has it any more."
        case UpdateStatus.UNKNOWN:
            yield "Its text is another one than the registry's; to have that, remove the pack and install it."
        case _:
            pass
    if not manifest.is_same_install(state.installed.manifest):
        yield f"Its manifest {'would be' if dry_run else 'was'} put right."
    if manifest.checked_at != (state.installed.manifest.checked_at if state.installed.manifest else None):
        yield "It was looked for something newer, so that it counts as fresh again."


def _quoted_titles(titles: Sequence[str]) -> str:
    shown = ", ".join(f'"{sanitize(title)}"' for title in titles[:_MAX_SHOWN_TITLES])
    more = len(titles) - _MAX_SHOWN_TITLES
    return f"{shown} and {more} more" if more > 0 else shown
