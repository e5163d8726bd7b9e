"""What `echod packs list` and `echod packs status` say to people."""

from __future__ import annotations

from collections.abc import Iterator

from echod.cli.output import pluralize, sanitize
from echod.contract.status import PackInfo
from echod.packs.check import UpdateStatus


def pack_list_lines(info: PackInfo) -> Iterator[str]:
    """A pack's line in `echod packs list`."""
    if info.installed:
        date_text = f", {info.installed_at[:10]}" if info.installed_at else ""
        version = f"v{sanitize(info.version)}" if info.version else "version not known"
        update_text = (
            f"; v{sanitize(info.available)} available"
            if info.available and info.offer == UpdateStatus.NEW_VERSION
            else ""
        )
        update_text = "; another text available" if info.offer == UpdateStatus.NEW_TEXT else update_text
        yield f"  {info.name:<15} ✓ installed ({version}{sanitize(date_text)}){update_text}"
    else:
        yield f"  {info.name:<15} ○ not installed"


def pack_status_lines(info: PackInfo, stale_after_days: int) -> Iterator[str]:
    """A pack's lines in `echod packs status`."""
    version = f"v{sanitize(info.version)}" if info.version else "-"
    age = "" if info.installed_days is None else f"installed {pluralize(max(0, info.installed_days), 'day')} ago"
    state = {True: f"⚠ stale (> {stale_after_days} days)", False: "✓ fresh", None: "? age not known"}[info.stale]
    yield f"  {info.name:<15} {version:<9} {age:<24} {state}"
    if info.stale and (info.updated_days or 0) > stale_after_days:
        yield f"      its text was last worked on {pluralize(info.updated_days or 0, 'day')} ago"
    if info.edited:
        yield "      changed by hand since it was installed; an update keeps that"
    if info.offer in (UpdateStatus.NEW_VERSION, UpdateStatus.NEW_TEXT):
        update_text = (
            f"v{sanitize(info.available or '')}"
            if info.offer == UpdateStatus.NEW_VERSION
            else "another text of this version"
        )
        yield f"      {update_text} is there: echod packs update {info.name}"
    elif info.stale:
        yield f"      have it looked for something newer: echod packs update {info.name}"
