"""A directory or file that is swapped for a link between the check and the use: the commit does not follow it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from echod.store.changes import Append, ChangeSet, Consume, Write
from echod.store.commit.steps import Step
from echod.store.engine import Engine
from echod.store.errors import Busy, Refused, StoreFault
from echod.store.layout import Role, Store
from echod.store.limits import EngineLimits
from echod.store.session import RoleSession
from tests.hostile.conftest import SECRET_OUTSIDE, Target, inventory

STEPS = (Step.BEGIN, Step.STAGED, Step.COMPARED, Step.INTENDED, Step.ARCHIVED, Step.EXCHANGED, Step.CLAIMED)


def change(session: RoleSession) -> None:
    """A change with everything in it: memory, archive, findings."""
    view, role = session.read(), PurePosixPath("reviewer")
    (found,) = view.findings
    session.commit(
        1,
        ChangeSet(
            "consolidate",
            "reviewer",
            "1 added",
            (Write(role / "MEMORY.md", view.memory.digest, view.memory.text + found.text),),
            (Append(role / "archive/pruned-2026.md", b"kept\n"),),
            (Consume(role / found.path.name, found.digest or "", role / "archive/findings/w.md", found.text),),
        ),
    )


def swapping(at: Step, swap: Callable[[], None]) -> Callable[[Step], None]:
    done: list[Step] = []

    def trace(step: Step, /) -> None:
        if step is at and not done:
            done.append(step)
            swap()

    return trace


def by_a_link(path: Path, outside: Path) -> Callable[[], None]:
    def swap() -> None:
        path.rename(path.with_name(f"{path.name}-was"))
        path.symlink_to(outside)

    return swap


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("what", ["MEMORY.md", "ward-findings.md", "archive", ".", "..", "../.."])
def test_nothing_outside_is_touched(target: Target, tmp_path: Path, step: Step, what: str) -> None:
    findings = target.findings().read_bytes()
    memory = target.memory.read_bytes()
    (target.role / "archive").mkdir()
    victim = Path(os.path.normpath(target.role / what))
    lead_to = target.outside if "." not in what.strip("./") else target.outside / "precious.md"
    store = Store(target.root, target.root / ".rune/echoes")
    engine = Engine(
        tmp_path / "journal",
        limits=EngineLimits(),
        clock=time.time,
        trace=swapping(step, by_a_link(victim, lead_to)),
    )
    before = inventory(target.outside)

    with contextlib.suppress(Busy, Refused, StoreFault), engine.open_role(Role(store, "reviewer")) as session:
        change(session)

    assert inventory(target.outside) == before
    assert (target.outside / "precious.md").read_text() == SECRET_OUTSIDE
    everything = [path.read_bytes() for path in target.root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(memory in text for text in everything)
    assert any(findings in text for text in everything)
