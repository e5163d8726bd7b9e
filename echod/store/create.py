"""Making a store where there is none: directories, and memory files with nothing but their header.

What exists is never touched. No symlink is followed below the project, and a file appears whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from echod.errors import UsageError
from echod.memory.document import new_memory_file
from echod.paths import PRIVATE_DIR_MODE
from echod.store.errors import as_store_error
from echod.store.fs import Dir, create_durable_file, make_dir, open_dir, rename_noreplace_or_link
from echod.store.layout import MEMORY, ROLE_NAME, Role, Store

DEFAULT_ROLES = ("planner", "workers", "reviewer", "auditor", "team", "orchestrator", "notes", "observations")
"""The roles that agents and the workflow plugins write to, and the two that echod itself writes to."""

_DIR_MODE = 0o777  # less the umask, like any other program's new directory
_FILE_MODE = 0o666


def roles_without_memory(store: Store, names: Sequence[str]) -> tuple[Role, ...]:
    """The roles of these names that have no memory file yet.

    Raises:
        UsageError: a name is no role's name.
    """
    invalid = next((name for name in names if not ROLE_NAME.fullmatch(name)), None)
    if invalid is not None:
        raise UsageError(f"{invalid!r} cannot be a role: a name has letters, digits, - and _ only.")
    roles = (Role(store, name) for name in dict.fromkeys(names))
    return tuple(role for role in roles if not os.path.lexists(role.memory))


def create_roles(roles: Sequence[Role], pid: int) -> None:
    """Make these roles, and their store if need be.

    Args:
        roles: what `roles_without_memory` found.
        pid: this process; part of the name under which a file is prepared.

    Raises:
        StoreError: something cannot be made; what was made stays, and doing it again makes the rest.
    """
    for role in roles:
        with as_store_error("make", role.path), ensure_directory(role.store.project, role.path) as home:
            _create_file(home, MEMORY, new_memory_file(role.name), f".{MEMORY}.echod-init-{pid}")


def ensure_directory(project: Path, directory: Path) -> Dir:
    """A directory below a project, open; it and those on the way are made where they are missing.

    Raises:
        OSError: one of them cannot be made, or is a symlink or no directory.
    """
    current = open_dir(project, ())
    for name in directory.relative_to(project).parts:
        with current:
            make_dir(current, name, _DIR_MODE)
            current = current.open_subdir(name)
    return current


def create_global_role(role: Role) -> None:
    """Make a role of the global store, and what lies above it, if there is none yet.

    Raises:
        StoreError: it cannot be made, or something else stands in its place.
    """
    with as_store_error("make", role.path):
        role.store.project.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
        ensure_directory(role.store.project, role.path).close()


def _create_file(directory: Dir, name: str, data: bytes, staged_name: str) -> None:
    create_durable_file(directory, staged_name, data, _FILE_MODE)
    try:
        rename_noreplace_or_link(directory, staged_name, directory, name)
    except FileExistsError:
        directory.unlink(staged_name)  # somebody else was faster, and theirs it is
    directory.sync()
