"""Create stores and roles, and append to memory files as agents do: without lock, lease or record in the journal.

Existing files are never changed. Below the project no symbolic link is followed. A file appears whole or not at all.

For a note of the user's that must not wait for other programs. A commit that runs at the same time treats the text like
any other program's: it is merged from the displaced file. A module of its own because everything else that writes
memory goes through the commit engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from echod.errors import UsageError
from echod.files import full_fsync, write_all
from echod.memory import MAX_FILE_BYTES
from echod.memory.document import new_memory_file
from echod.paths import PRIVATE_DIR_MODE
from echod.store.errors import as_store_error
from echod.store.fs import (
    NEW_FILE_MODE,
    Dir,
    create_durable_file,
    make_dir,
    open_dir,
    read_all,
    rename_noreplace_or_link,
)
from echod.store.layout import MEMORY, ROLE_NAME, Role, Store

DEFAULT_ROLES = ("planner", "workers", "reviewer", "auditor", "team", "orchestrator", "notes", "observations")
"""The roles that agents and the workflow plugins write to, and the two that echod itself writes to."""


def roles_without_memory(store: Store, names: Sequence[str]) -> tuple[Role, ...]:
    """Return the roles of these names that have no memory file yet. An invalid name is a `UsageError`."""
    invalid = next((name for name in names if not ROLE_NAME.fullmatch(name)), None)
    if invalid is not None:
        raise UsageError(f"Invalid role name {invalid!r}: use letters, digits, - and _.")
    roles = (Role(store, name) for name in dict.fromkeys(names))
    return tuple(role for role in roles if not os.path.lexists(role.memory))


def create_roles(roles: Sequence[Role], pid: int) -> None:
    """Create these roles with their memory files, and their store if it is missing.

    `pid` is part of the name under which a file is prepared. After a `StoreError` the roles created so far remain, and
    a second call creates the rest.
    """
    for role in roles:
        with as_store_error("create", role.path), ensure_directory(role.store.project, role.path) as directory:
            _create_memory(directory, new_memory_file(role.name), f".{MEMORY}.echod-init-{pid}")


def create_role_directory(role: Role) -> None:
    """Create a role's directory in an existing store, if it does not exist (`remember` and observations start roles).

    A `StoreError` reports that it cannot be created, or that something else is in its place.
    """
    store_parts = role.store.root.relative_to(role.store.project).parts
    with as_store_error("create the role", role.path), open_dir(role.store.project, store_parts) as store:
        make_dir(store, role.name)
        store.open_subdir(role.name).close()


def create_global_role(role: Role) -> None:
    """Create a role of the global store and the directories above it, if they do not exist."""
    with as_store_error("create", role.path):
        role.store.project.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
        ensure_directory(role.store.project, role.path).close()


def create_findings_file(role: Role, name: str, data: bytes, pid: int) -> bool:
    """Create a findings file in an existing role. Return False if there is one of that name, which stays as it is.

    `pid` is part of the name under which the file is prepared. A `StoreError` reports that it cannot be created.
    """
    parts = role.path.relative_to(role.store.project).parts
    with as_store_error("create", role.path / name), open_dir(role.store.project, parts) as directory:
        staged_name = f".{name}.echod-{pid}"
        create_durable_file(directory, staged_name, data, NEW_FILE_MODE)
        try:
            rename_noreplace_or_link(directory, staged_name, directory, name)
        except FileExistsError:
            directory.unlink(staged_name)
            return False
        directory.sync()
        return True


def ensure_directory(project: Path, directory: Path) -> Dir:
    """Open a directory below a project. It and the directories above it are created if they are missing."""
    current = open_dir(project, ())
    for name in directory.relative_to(project).parts:
        with current:
            make_dir(current, name)
            current = current.open_subdir(name)
    return current


def _create_memory(directory: Dir, data: bytes, staged_name: str) -> None:
    create_durable_file(directory, staged_name, data, NEW_FILE_MODE)
    try:
        rename_noreplace_or_link(directory, staged_name, directory, MEMORY)
    except FileExistsError:
        directory.unlink(staged_name)  # another process was faster, and its file is kept
    directory.sync()


def append_to_memory(role: Role, addition: Callable[[bytes], bytes]) -> None:
    """Append to the memory file of a role, which is created if it is missing.

    `addition` gets the present content and returns the text for its end, which is written at once and durably.

    Raises:
        StoreError: the file system failed, or something else than a plain file is in the way.
    """
    with as_store_error("append to", role.memory), ensure_directory(role.store.project, role.path) as directory:
        with directory.open(MEMORY, os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
            text = addition(read_all(file, MAX_FILE_BYTES))
            write_all(file, text)
            full_fsync(file)
        directory.sync()
