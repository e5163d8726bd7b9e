"""The ground a commit stands on: a role's directories, opened once, so that nothing can be swapped under it.

Paths are relative to the store and must lie in the role. Only `archive/` and `quarantine/` are made when missing.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from echod.store.errors import Refused, told
from echod.store.fs import Dir, make_dir, open_dir
from echod.store.layout import ROLE_NAME, Role

_MADE_WHEN_MISSING = ("archive", "quarantine")
DIR_MODE = 0o777  # less the umask, like any other program's new directory


@dataclass(frozen=True, slots=True)
class Ground:
    """Open directories of a role. Get one by `stand_on`."""

    role: Role
    home: Dir
    _open: dict[tuple[str, ...], Dir]
    _stack: ExitStack

    def place(self, path: str | PurePosixPath) -> tuple[Dir, str]:
        """The open directory and the name that a path (relative to the store) means.

        Raises:
            Refused: the path leads out of the role or to a hidden file.
            OSError: a directory on the way is missing, a symlink, or no directory.
        """
        parts = PurePosixPath(path).parts
        if parts[:-1][: len(self._prefix())] != self._prefix() or any(p in ("", "..") or p[0] == "." for p in parts):
            raise Refused(f"The path {path} does not lie in the role {self.role.name!r}; nothing was written.")
        below = parts[len(self._prefix()) : -1]
        return self._directory(below), parts[-1]

    def path_of(self, name: str) -> str:
        """The path, relative to the store, of a file in the role's own directory."""
        return "/".join((*self._prefix(), name))

    def made(self) -> Iterator[Dir]:
        """The directories below the role in which echod writes, as far as they exist."""
        for name in _MADE_WHEN_MISSING:
            found = self.home.stat(name)
            if found is not None and stat.S_ISDIR(found.st_mode):
                yield self._directory((name,))

    def _prefix(self) -> tuple[str, ...]:
        return (self.role.name,) if self.role.name else ()

    def _directory(self, below: tuple[str, ...]) -> Dir:
        if not below:
            return self.home
        if below not in self._open:
            parent = self._directory(below[:-1])
            if below[0] in _MADE_WHEN_MISSING:
                make_dir(parent, below[-1], DIR_MODE)
            self._open[below] = self._stack.enter_context(parent.below(below[-1]))
        return self._open[below]


@contextmanager
def stand_on(role: Role) -> Iterator[Ground]:
    """Open a role's directory.

    Raises:
        Refused: the role's name is none, so that it could lead anywhere.
        StoreFault: it is missing, a symlink, or may not be opened.
    """
    if role.name and not ROLE_NAME.fullmatch(role.name):
        raise Refused(f"{role.name!r} is no name of a role (letters, digits, - and _); nothing was done there.")
    with ExitStack() as stack:
        with told("open the role directory", role.path):
            below = role.path.relative_to(role.store.project).parts
            home = stack.enter_context(open_dir(role.store.project, below))
        yield Ground(role, home, {}, stack)
