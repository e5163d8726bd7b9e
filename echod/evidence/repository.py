"""The history of a repository: its commits, its trees, and the contents that a path had.

The reader begins at the commit that is checked out. In a shallow clone the history ends where the clone does.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import Final, NamedTuple

from echod.evidence.git_objects import ObjectError, ObjectStore
from echod.files import read_regular
from echod.store.git import read_commit

MAX_COMMITS: Final = 20_000
"""Commits that one look at the history reads."""

_MAX_CONFIG_BYTES: Final = 1024 * 1024
_MAX_CACHED: Final = 20_000
_TREE, _SUBMODULE = b"40000", b"160000"
_SHA256: Final = re.compile(r"^[ \t]*objectformat[ \t]*=[ \t]*sha256[ \t]*$", re.IGNORECASE | re.MULTILINE)
_LINE: Final = re.compile(rb"^(tree|parent|committer) (.*)$", re.MULTILINE)


class Commit(NamedTuple):
    """A commit: its name, its tree, its parents, and its time in Unix seconds."""

    name: str
    tree: str
    parents: tuple[str, ...]
    at: int


class Repository:
    """A repository that is read without running git. `root` is the working tree. For one thread."""

    def __init__(self, root: Path, git: Path, common: Path) -> None:
        """Use `find_repository` instead."""
        self.root = root
        self._name_bytes = 32 if _SHA256.search(_read_text(common / "config")) else 20
        self._objects = ObjectStore(common / "objects", self._name_bytes)
        self._shallow = frozenset(_read_text(common / "shallow").split())
        self._commits: OrderedDict[str, Commit] = OrderedDict()
        self._trees: OrderedDict[str, dict[bytes, tuple[bytes, str]]] = OrderedDict()
        del git

    @property
    def has_sha1_names(self) -> bool:
        """Whether objects are named by SHA-1, as fingerprints name them."""
        return self._name_bytes == 20  # noqa: PLR2004  bytes of SHA-1

    def close(self) -> None:
        """Close the files."""
        self._objects.close()

    def head(self) -> str | None:
        """Return the commit that is checked out; None without one."""
        return read_commit(self.root)

    def commit(self, name: str) -> Commit:
        """Return a commit.

        Raises:
            ObjectError: it cannot be read.
        """
        found = self._commits.get(name)
        if found is None:
            found = self._parse_commit(name)
            self._commits[name] = found
            if len(self._commits) > _MAX_CACHED:
                self._commits.popitem(last=False)
        return found

    def _parse_commit(self, name: str) -> Commit:
        read = self._objects.read(name)
        header = read.data.partition(b"\n\n")[0]
        tree, parents, at = "", [], 0
        for kind, value in _LINE.findall(header):
            if kind == b"tree":
                tree = value.decode("ascii", "replace")
            elif kind == b"parent":
                parents.append(value.decode("ascii", "replace"))
            else:
                try:
                    at = int(value.rsplit(b" ", 2)[-2])
                except (ValueError, IndexError):
                    at = 0
        if read.kind != "commit" or not tree:
            raise ObjectError(f"{name} is not a commit")
        return Commit(name, tree, () if name in self._shallow else tuple(parents), at)

    def walk(self, head: str) -> Iterator[Commit]:
        """Yield the history of a commit, newest first, as far as it can be read. At most `MAX_COMMITS`."""
        queue: list[tuple[int, str]] = []
        seen = {head}
        self._push(queue, head)
        for _ in range(MAX_COMMITS):
            if not queue:
                return
            commit = self.commit(heappop(queue)[1])
            yield commit
            for parent in commit.parents:
                if parent not in seen:
                    seen.add(parent)
                    self._push(queue, parent)

    def _push(self, queue: list[tuple[int, str]], name: str) -> None:
        try:
            heappush(queue, (-self.commit(name).at, name))
        except ObjectError:
            return

    def commit_at(self, moment: float) -> Commit | None:
        """Return the last commit of the checked-out history's main line at a moment (Unix seconds).

        The main line follows the first parent of a merge. None if the history does not reach back so far.

        Raises:
            ObjectError: the history cannot be read.
        """
        name = self.head()
        for _ in range(MAX_COMMITS):
            if name is None:
                return None
            commit = self.commit(name)
            if commit.at <= moment:
                return commit
            name = commit.parents[0] if commit.parents else None
        return None

    def first_with(self, path: str, moment: float) -> Commit | None:
        """Return the earliest commit of the main line after a moment that has a path; None if there is none.

        Raises:
            ObjectError: the history cannot be read.
        """
        name, found = self.head(), None
        for _ in range(MAX_COMMITS):
            if name is None:
                break
            commit = self.commit(name)
            if commit.at <= moment:
                break
            if self.blob_name(commit, path) is not None:
                found = commit
            name = commit.parents[0] if commit.parents else None
        return found

    def blob_name(self, commit: Commit, path: str) -> str | None:
        """Return the name of a file's content in a commit; None if the commit has no such file.

        Raises:
            ObjectError: a tree cannot be read.
        """
        tree = commit.tree
        *folders, name = os.fsencode(path).split(b"/")
        for folder in folders:
            mode, inner = self._tree(tree).get(folder, (b"", ""))
            if mode != _TREE:
                return None
            tree = inner
        mode, blob = self._tree(tree).get(name, (b"", ""))
        return blob if mode.startswith(b"100") else None

    def read_blob(self, name: str) -> bytes:
        """Return a content.

        Raises:
            ObjectError: it cannot be read.
        """
        return self._objects.read(name).data

    def _tree(self, name: str) -> dict[bytes, tuple[bytes, str]]:
        found = self._trees.get(name)
        if found is None:
            found = _parse_tree(self._objects.read(name).data, self._name_bytes)
            self._trees[name] = found
            if len(self._trees) > _MAX_CACHED // 10:
                self._trees.popitem(last=False)
        return found


def _parse_tree(data: bytes, name_bytes: int) -> dict[bytes, tuple[bytes, str]]:
    entries, at = {}, 0
    while at < len(data):
        space = data.find(b" ", at)
        end = data.find(b"\0", space)
        if space < 0 or end < 0:
            raise ObjectError("a damaged tree")
        entries[data[space + 1 : end]] = (data[at:space], data[end + 1 : end + 1 + name_bytes].hex())
        at = end + 1 + name_bytes
    return entries


def find_repository(directory: Path) -> Repository | None:
    """Return the repository whose working tree contains a directory: the innermost one, as for a submodule."""
    for root in (directory, *directory.parents):
        link = root / ".git"
        try:
            if link.is_dir():
                git = link
            elif link.is_file():
                pointer = _read_text(link).partition("gitdir:")[2].strip()
                if not pointer or "\0" in pointer:
                    return None
                git = Path(os.path.realpath(root / pointer))
            else:
                continue
            shared = _read_text(git / "commondir").strip()
            common = Path(os.path.realpath(git / shared)) if shared else git
            return Repository(root, git, common)
        except (OSError, ValueError):
            return None
    return None


def _read_text(file: Path) -> str:
    try:
        return read_regular(file, _MAX_CONFIG_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
