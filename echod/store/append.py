"""Append to a memory file as agents do: no lock, no lease, no record in the journal.

For a note of the user's that must not wait for other programs. A commit that runs at the same time treats the text like
any other program's: it is merged from the displaced file. A module of its own because everything else that writes
memory goes through the commit engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from echod.files import full_fsync, write_all
from echod.memory.model import MAX_FILE_BYTES
from echod.store.create import ensure_directory
from echod.store.errors import as_store_error
from echod.store.fs import read_all
from echod.store.layout import MEMORY, Role


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
