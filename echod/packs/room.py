"""Where packs come from and where they go, for one user: what commands and the service start from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from echod.store.commons import global_role, global_store, packs_store
from echod.store.layout import Role, Store

if TYPE_CHECKING:
    from echod.packs.installed import Holding
    from echod.packs.registries import Registries


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
    def is_there(self) -> bool:
        """Whether there is something in the global store's place, of whatever kind, or that cannot be told."""
        root = global_store(self.home).root
        try:
            os.lstat(root)
        except FileNotFoundError:
            return root.parent.is_symlink()  # which is not followed
        except OSError:
            pass  # unknown is not absent
        return True

    @property
    def memory(self) -> Role:
        """The role of the global memory file."""
        return global_role(self.home)

    def role(self, stack: str) -> Role:
        """The role of a pack."""
        return Role(packs_store(self.home), stack)

    def available(self) -> Registries:
        """The registries as they are now."""
        from echod.packs.registries import read_registries  # noqa: PLC0415  slow to load, and few have packs

        return read_registries(self.registries)

    def installed(self) -> Holding:
        """The global store as it is now.

        Raises:
            StoreFault: it cannot be looked into.
        """
        from echod.packs.installed import look  # noqa: PLC0415

        return look(self.home)
