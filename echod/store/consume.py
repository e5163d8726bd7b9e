"""Taking a findings file away: claimed by rename to a dot-name that only we use, never checked and unlinked.

Its agent may write on through a descriptor it holds, or make the name anew at any time: the first is followed as
late bytes, the second is simply a new file.
"""

from __future__ import annotations

from echod.store.fs import Dir
from echod.store.journal.records import ConsumeRecord
from echod.store.renames import move_new


def claim(directory: Dir, name: str, consume: ConsumeRecord) -> None:
    """Move the findings file to its claim name; a file that is gone, or claimed already, is fine.

    Raises:
        OSError: the file system refused.
    """
    if directory.inode(consume.claim) is not None:
        return
    try:
        move_new(directory, name, directory, consume.claim)
    except (FileNotFoundError, FileExistsError):
        return
