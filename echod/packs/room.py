"""Where packs come from and where they go, for one user: what commands and the service start from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from echod.packs.check import PackState, states
from echod.packs.installed import Holding, look
from echod.packs.registries import Registries, read_registries
from echod.store.commons import global_role, global_store, packs_store
from echod.store.layout import Role, Store


@dataclass(frozen=True, slots=True)
class PackRoom:
    """`home` is Claude Code's own directory, resolved; `registries` are the places that the settings name."""

    home: Path
    registries: tuple[str, ...]

    @property
    def stores(self) -> tuple[Store, Store]:
        """The global store's two: that of elevated entries and that of the packs."""
        return global_store(self.home), packs_store(self.home)

    @property
    def memory(self) -> Role:
        """The role of the global memory file."""
        return global_role(self.home)

    def role(self, stack: str) -> Role:
        """The role of a pack."""
        return Role(packs_store(self.home), stack)

    def available(self) -> Registries:
        """The registries as they are now."""
        return read_registries(self.registries)

    def installed(self) -> Holding:
        """The global store as it is now.

        Raises:
            StoreFault: it cannot be looked into.
        """
        return look(self.home)


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
