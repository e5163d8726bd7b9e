"""Which manifest belongs to what was done to a pack: the pack's file and its manifest cannot be written in one step.

Every change of a pack leaves a line in its archive that says how its manifest was before and is to be afterwards.
After a crash between the two writes, and after an undo, those lines tell which manifest the file should have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from echod.memory.packs.manifest import Manifest, Unusable, read_manifest


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a pack: its manifest's text before and after, None for no manifest. `stands`: it was not undone."""

    before: str | None
    after: str | None
    stands: bool


@dataclass(frozen=True, slots=True)
class Due:
    """The manifest's text as it should be; None: there should be none."""

    text: str | None


def compose_step(job: int, before: bytes | None, after: bytes | None) -> bytes:
    """The line that a change leaves in the archive."""
    texts = {"before": before and before.decode(errors="replace"), "after": after and after.decode()}
    return f"{json.dumps({'job': job, **texts}, ensure_ascii=False)}\n".encode()


def read_steps(data: bytes) -> Mapping[int, tuple[str | None, str | None]]:
    """Before and after of every line, by the job that left it; what is no such line is passed over."""
    found: dict[int, tuple[str | None, str | None]] = {}
    for line in data.decode(errors="replace").splitlines():
        try:
            values = json.loads(line)
            before, after = values["before"], values["after"]
        except (ValueError, RecursionError, TypeError, KeyError):
            continue
        if isinstance(values["job"], int) and all(t is None or isinstance(t, str) for t in (before, after)):
            found[values["job"]] = (before, after)
    return found


def due_manifest(stack: str, steps: Sequence[Step], present: str | None, *, has_file: bool) -> Due | None:
    """The manifest that a pack should have; None where it may stay as it is.

    A manifest that none of the steps knows was written by another program, and stays.

    Args:
        stack: the pack's name.
        steps: what was done to it, as far as that is known, the newest first.
        present: the manifest's text; None: there is none.
        has_file: whether the pack's memory file exists.
    """
    if not steps:
        return None
    undone = tuple(takewhile(lambda step: not step.stands, steps))
    # Not what the step before left: the manifest may have changed since by other means.
    wanted = undone[-1].before if undone else steps[0].after
    made = next((step for step in steps if step.before is None), None)
    if not has_file and made is not None and not made.stands:
        wanted = None  # what only changed the manifest stands, but the installation that it was about does not
    if (wanted is not None) != has_file or _same(stack, present, wanted):
        return None
    known = {text for step in steps for text in (step.before, step.after)}
    return Due(wanted) if any(_same(stack, present, text) for text in known) else None


def _same(stack: str, one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one is other
    first, second = (_read(text, stack) for text in (one, other))
    if isinstance(first, Manifest):
        return isinstance(second, Manifest) and first.same_install(second)
    return one == other


def _read(text: str, stack: str) -> Manifest | Unusable:
    return read_manifest(text.encode(), stack)
