"""Making a store where there is none: directories, and memory files with nothing but their header.

What exists is never touched. No symlink is followed below the project, and a file appears whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from echod.errors import UsageError
from echod.memory.document import new_memory_file
from echod.paths import PRIVATE_DIR
from echod.store.errors import told
from echod.store.fs import Dir, make_dir, move_new, open_dir, prepare_file
from echod.store.layout import MEMORY, ROLE_NAME, Role, Store

ROLES = ("planner", "workers", "reviewer", "auditor", "team", "orchestrator", "notes", "observations")
"""The roles that agents and the workflow plugins write to, and the two that echod itself writes to."""

_DIR_MODE = 0o777  # less the umask, like any other program's new directory
_FILE_MODE = 0o666


def missing(store: Store, names: Sequence[str]) -> tuple[Role, ...]:
    """The roles of these names that have no memory file yet.

    Raises:
        UsageError: a name is no role's name.
    """
    odd = next((name for name in names if not ROLE_NAME.fullmatch(name)), None)
    if odd is not None:
        raise UsageError(f"{odd!r} cannot be a role: a name has letters, digits, - and _ only.")
    roles = (Role(store, name) for name in dict.fromkeys(names))
    return tuple(role for role in roles if not os.path.lexists(role.memory))


def create(roles: Sequence[Role], pid: int) -> None:
    """Make these roles, and their store if need be.

    Args:
        roles: what `missing` found.
        pid: this process; part of the name under which a file is prepared.

    Raises:
        StoreFault: something cannot be made; what was made stays, and doing it again makes the rest.
    """
    for role in roles:
        with told("make", role.path), made(role.store.project, role.path) as home:
            _file(home, MEMORY, new_memory_file(role.name), f".{MEMORY}.echod-init-{pid}")


def made(project: Path, directory: Path) -> Dir:
    """A directory below a project, open; it and those on the way are made where they are missing.

    Raises:
        OSError: one of them cannot be made, or is a symlink or no directory.
    """
    here = open_dir(project, ())
    for name in directory.relative_to(project).parts:
        with here:
            make_dir(here, name, _DIR_MODE)
            here = here.below(name)
    return here


def make_global(role: Role) -> None:
    """Make a role of the global store, and what lies above it, if there is none yet.

    Raises:
        StoreFault: it cannot be made, or something else stands in its place.
    """
    with told("make", role.path):
        role.store.project.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        made(role.store.project, role.path).close()


def _file(home: Dir, name: str, data: bytes, stage: str) -> None:
    prepare_file(home, stage, data, _FILE_MODE)
    try:
        move_new(home, stage, home, name)
    except FileExistsError:
        home.unlink(stage)  # somebody else was faster, and theirs it is
    home.sync()
