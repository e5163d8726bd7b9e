"""A directory or file that is replaced by a link between check and use: the commit does not follow it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from echod.store.changes import Append, ChangeSet, ConsumeFindings, Write
from echod.store.commit.context import CommitStep
from echod.store.engine import Engine, RoleSession
from echod.store.errors import BusyError, EngineLimits, RefusedError, StoreError
from echod.store.layout import Role, Store
from tests.hostile.conftest import SECRET_OUTSIDE, Target, snapshot_tree

STEPS = (
    CommitStep.BEGIN,
    CommitStep.STAGED,
    CommitStep.COMPARED,
    CommitStep.INTENT_WRITTEN,
    CommitStep.ARCHIVED,
    CommitStep.EXCHANGED,
    CommitStep.CLAIMED,
)


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
            (ConsumeFindings(role / found.path.name, found.digest or "", role / "archive/findings/w.md", found.text),),
        ),
    )


def swap_at(at: CommitStep, swap: Callable[[], None]) -> Callable[[CommitStep], None]:
    done: list[CommitStep] = []

    def trace(step: CommitStep, /) -> None:
        if step is at and not done:
            done.append(step)
            swap()

    return trace


def replace_with_link(path: Path, outside: Path) -> Callable[[], None]:
    def swap() -> None:
        path.rename(path.with_name(f"{path.name}-was"))
        path.symlink_to(outside)

    return swap


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("what", ["MEMORY.md", "ward-findings.md", "archive", ".", "..", "../.."])
def test_nothing_outside_is_touched(target: Target, tmp_path: Path, step: CommitStep, what: str) -> None:
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
        trace=swap_at(step, replace_with_link(victim, lead_to)),
    )
    before = snapshot_tree(target.outside)

    with contextlib.suppress(BusyError, RefusedError, StoreError), engine.open_role(Role(store, "reviewer")) as session:
        change(session)

    assert snapshot_tree(target.outside) == before
    assert (target.outside / "precious.md").read_text() == SECRET_OUTSIDE
    everything = [path.read_bytes() for path in target.root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(memory in text for text in everything)
    assert any(findings in text for text in everything)
