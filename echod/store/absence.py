"""A memory file that we took away: that it is gone is our doing, and is not to be taken for a person's."""

from __future__ import annotations

from echod.store.commit.context import Desk
from echod.store.healing.heal import head_of
from echod.store.journal.journal import KnownState
from echod.store.layout import MEMORY
from echod.store.plan import Plan


def remember_absence(desk: Desk, plan: Plan) -> None:
    """Make it the newest known state that there is no memory file, if the plan took it away."""
    if any(consume.path == desk.ground.path_of(MEMORY) for consume in plan.consumes):
        absent = KnownState(desk.journal.images.put(b""), desk.moment(), head_of(desk))
        desk.journal.note_states([absent])
