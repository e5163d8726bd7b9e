"""What `echod packs list` and `echod packs status` say to people."""

from __future__ import annotations

from collections.abc import Iterator

from echod.cli.text import count, plain
from echod.contract.status import PackInfo
from echod.packs.check import Offer


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
