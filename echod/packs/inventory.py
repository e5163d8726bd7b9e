"""One look at all doc packs: what is installed, compared with what the registries have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from echod.packs.check import PackState, states
from echod.packs.installed import Holding
from echod.packs.room import PackRoom


@dataclass(frozen=True, slots=True)
class Inventory:
    """One look at everything: how each pack stands, and what is wrong with a registry or a manifest."""

    packs: tuple[PackState, ...]
    registry_problems: tuple[str, ...]
    store_problems: tuple[str, ...]

    @property
    def installed(self) -> tuple[PackState, ...]:
        """The packs that are in the global store."""
        return tuple(state for state in self.packs if state.is_installed)


def take_inventory(room: PackRoom, holding: Holding, now: float, staleness_days: int) -> Inventory:
    """Compare what is installed with what the registries have.

    Args:
        room: where the registries are.
        holding: what is installed.
        now: Unix seconds.
        staleness_days: a pack that is older is stale.
    """
    registries = room.available()
    found = states(holding, registries, datetime.fromtimestamp(now).astimezone(), staleness_days)
    broken = (pack.problem for pack in holding.packs if pack.problem is not None)
    problems = tuple(problem for registry in registries.each for problem in registry.problems)
    return Inventory(found, problems, (*broken, *holding.problems))
