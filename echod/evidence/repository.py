"""The contents of a project's files, now and in its history: the working tree, and the repository.

The reader begins at the commit that is checked out. In a shallow clone the history ends where the clone does.
"""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from echod.evidence.git_objects import IndexEntry, ObjectError, ObjectStore, read_index
from echod.files import FileVersion, file_version, read_regular
from echod.lazy import lazy_pattern
from echod.memory.evidence.fingerprint import TokenizedFile, blob_digest, line_sums, read_content
from echod.store.git import read_commit

MAX_COMMITS: Final = 20_000
"""Commits that one look at the history reads."""

_MAX_CONFIG_BYTES: Final = 1024 * 1024
_MAX_INDEX_BYTES: Final = 16 * 1024 * 1024
_MAX_CACHED: Final = 20_000
_TREE, _SUBMODULE = b"40000", b"160000"
_SHA256: Final = lazy_pattern(r"^[ \t]*objectformat[ \t]*=[ \t]*sha256[ \t]*$", re.IGNORECASE | re.MULTILINE)
_LINE: Final = lazy_pattern(rb"^(tree|parent|committer) (.*)$", re.MULTILINE)


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
        self._main_line: dict[tuple[str | None, float], Commit | None] = {}
        self._trees: OrderedDict[str, dict[bytes, tuple[bytes, str]]] = OrderedDict()
        self._index_file = git / "index"
        self._index: tuple[int, dict[bytes, IndexEntry]] | None = None

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
        head = name = self.head()
        if (head, moment) in self._main_line:
            return self._main_line[head, moment]
        found = None
        for _ in range(MAX_COMMITS):
            commit = self.commit(name) if name else None
            if commit is None or commit.at <= moment:
                found = commit
                break
            name = commit.parents[0] if commit.parents else None
        self._main_line[head, moment] = found
        return found

    def first_with(self, path: str, moment: float, limit: int = MAX_COMMITS) -> Commit | None:
        """Return the earliest of the main line's last commits after a moment that has a path; None if none has it.

        Raises:
            ObjectError: the history cannot be read.
        """
        name, found = self.head(), None
        for _ in range(limit):
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
        folder, _, name = os.fsencode(path).rpartition(b"/")
        mode, blob = self._folder(commit, folder).get(name, (b"", ""))
        return blob if mode.startswith(b"100") else None

    def _folder(self, commit: Commit, folder: bytes) -> Mapping[bytes, tuple[bytes, str]]:
        """Return the entries of a folder of a commit with their modes and names; none if it has no such folder."""
        tree = commit.tree
        for part in folder.split(b"/") if folder else ():
            mode, tree = self._tree(tree).get(part, (b"", ""))
            if mode != _TREE:
                return {}
        return self._tree(tree)

    def unchanged_files(self, commit: str, folder: str) -> Mapping[str, IndexEntry]:
        """Return the files of a folder that git's index has as they were in a commit, by their names.

        Args:
            commit: the name of the commit.
            folder: its path, relative to the repository; "" for the repository itself.

        Raises:
            ObjectError: the commit or a tree of it cannot be read.
        """
        written_ns, entries = self._read_index()
        prefix = os.fsencode(f"{folder}/" if folder else "")
        found = {}
        for name, (mode, blob) in self._folder(self.commit(commit), os.fsencode(folder)).items():
            entry = entries.get(prefix + name) if mode.startswith(b"100") else None
            # A change after the index was written may have left the same time.
            if entry is not None and entry.blob == blob and entry.modified_ns < written_ns:
                found[os.fsdecode(name)] = entry
        return found

    def _read_index(self) -> tuple[int, dict[bytes, IndexEntry]]:
        """Return when the index was written, in nanoseconds since 1970, and its entries: none if it is unreadable."""
        if self._index is None:
            try:
                written_ns = self._index_file.stat().st_mtime_ns
                data = read_regular(self._index_file, _MAX_INDEX_BYTES)
                self._index = (written_ns, read_index(data, self._name_bytes))
            except OSError:
                self._index = (0, {})
        return self._index

    def is_in_submodule(self, commit: Commit, path: str) -> bool:
        """Return whether a path of a commit belongs to another repository, a submodule.

        Raises:
            ObjectError: a tree cannot be read.
        """
        tree = commit.tree
        for folder in os.fsencode(path).split(b"/")[:-1]:
            mode, tree = self._tree(tree).get(folder, (b"", ""))
            if mode != _TREE:
                return mode == _SUBMODULE
        return False

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


MAX_FILE_BYTES: Final = 4 * 1024 * 1024
MAX_FILES: Final = 30_000
"""Files of a project that are listed when a cited one is looked for."""

_PROJECT_FILES_MAX_CACHED: Final = 256
_MAX_CANDIDATES: Final = 250
_MAX_CANDIDATE_BYTES: Final = 2 * 1024 * 1024
_SAME_NAME, _PART_OF_NAME, _SAME_STEM = 0.13, 0.15, 0.2
_PASSED_OVER: Final = frozenset({
    "node_modules", "__pycache__", "venv", "target", "dist", "build", "site-packages", "vendor",
})  # fmt: skip

_SHOWN: Final = frozenset({".github", ".claude", ".circleci"})


class UnreadableEvidenceError(Exception):
    """A cited file cannot be read, so nothing is known about it."""


class OutsideError(Exception):
    """A citation leads out of the project."""


class ProjectFile(NamedTuple):
    """A file of a project: its path relative to the project, its size, and when its content and status last changed."""

    path: str
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


class ProjectFiles:
    """Reads the files of one project, each once for every version. For one thread."""

    def __init__(self, project: Path) -> None:
        self.project = Path(os.path.realpath(project))
        self._contents: OrderedDict[str, tuple[FileVersion, TokenizedFile]] = OrderedDict()
        self._line_sums: dict[str, tuple[FileVersion, frozenset[int]]] = {}
        self._digests: dict[str, tuple[FileVersion, str]] = {}
        self._listed: tuple[ProjectFile, ...] | None = None

    def relative_path(self, path: str) -> str:
        """Return a cited path relative to the project, whether or not it exists.

        Raises:
            OutsideError: it leads out of the project.
        """
        if path.startswith("~"):
            raise OutsideError(path)
        root = str(self.project)
        whole = os.path.normpath(os.path.join(root, path))  # noqa: PTH118  called for every citation of a memory
        try:
            real = os.path.realpath(whole)
        except (ValueError, OSError) as error:
            raise OutsideError(path) from error
        below = f"{root.rstrip('/')}/"
        if any(one != root and not one.startswith(below) for one in (whole, real)):
            raise OutsideError(path)
        return whole.removeprefix(below) if whole != root else "."

    def exists(self, path: str) -> bool:
        """Return whether a path leads to a file or directory.

        Raises:
            UnreadableEvidenceError: that cannot be decided.
        """
        try:
            (self.project / path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError) as error:
            raise UnreadableEvidenceError(path) from error
        return True

    def read(self, path: str) -> TokenizedFile:
        """Return the content of a file, which exists.

        Raises:
            UnreadableEvidenceError: it is no regular file, too large, or cannot be read.
        """
        file = self.project / path
        try:
            version = file_version(file.stat())
            known = self._contents.get(path)
            if known is None or known[0] != version:
                known = (version, read_content(read_regular(file, MAX_FILE_BYTES)))
                self._contents[path] = known
                if len(self._contents) > _PROJECT_FILES_MAX_CACHED:
                    self._contents.popitem(last=False)
        except (OSError, ValueError) as error:
            raise UnreadableEvidenceError(path) from error
        return known[1]

    def digest(self, path: str) -> str:
        """Return the name that git gives to the content of a file, which exists. Takes a tenth of the time of `read`.

        Raises:
            UnreadableEvidenceError: as `read`.
        """
        file = self.project / path
        try:
            version = file_version(file.stat())
            known = self._digests.get(path)
            if known is None or known[0] != version:
                known = self._digests[path] = (version, blob_digest(read_regular(file, MAX_FILE_BYTES)))
        except (OSError, ValueError) as error:
            raise UnreadableEvidenceError(path) from error
        return known[1]

    def line_sums(self, path: str) -> frozenset[int]:
        """Return the checksums of the lines of a file; none if it cannot be read."""
        file = self.project / path
        try:
            version = file_version(file.stat())
            known = self._line_sums.get(path)
            if known is None or known[0] != version:
                known = self._line_sums[path] = (version, line_sums(read_regular(file, MAX_FILE_BYTES)))
        except (OSError, ValueError):
            return frozenset()
        return known[1]

    def list_files(self) -> tuple[ProjectFile, ...]:
        """List the files of the project, without hidden ones and those that programs make. At most `MAX_FILES`."""
        if self._listed is None:
            self._listed = tuple(self._iter_files())
        return self._listed

    def _iter_files(self) -> Iterator[ProjectFile]:
        count = 0
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(self.project / folder) as entries:
                    for entry in sorted(entries, key=lambda e: e.name):
                        path = f"{folder}{entry.name}"
                        if entry.is_symlink() or not path.isprintable():
                            continue
                        if entry.is_dir():
                            if (entry.name not in _PASSED_OVER and entry.name[0] != ".") or entry.name in _SHOWN:
                                pending.append(f"{path}/")
                            continue
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            yield ProjectFile(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                            count += 1
                            if count >= MAX_FILES:
                                return
            except OSError:
                continue

    def ending_with(self, path: str) -> tuple[str, ...]:
        """Return the files whose path ends with a cited path, since entries cite paths relative to some directory."""
        return tuple(file.path for file in self.list_files() if file.path.endswith(f"/{path}"))

    def rename_candidates(
        self, path: str, size: int, since_ns: int, is_unchanged: Callable[[ProjectFile], bool]
    ) -> tuple[ProjectFile, ...]:
        """Return the files that may have the lines of a missing file now, the most likely first.

        A file that is known to be unchanged since then (`is_unchanged`) is none of them.
        """
        folder = path.rpartition("/")[0]
        stem, ending = _split_name(path.rpartition("/")[2])
        found = []
        nearness: dict[str, int] = {}
        for file in self.list_files():
            # What a file gets changes its status, so an older file cannot be the one.
            if file.changed_ns < since_ns or file.size > MAX_FILE_BYTES or is_unchanged(file) or file.path == path:
                continue
            other_stem, other_ending = _split_name(file.name)
            is_near = other_stem == stem or name_likeness(path, file.path) > 0
            if is_near or other_ending == ending:
                other = file.path.rpartition("/")[0]
                if other not in nearness:
                    nearness[other] = -len(os.path.commonpath((folder, other)))
                found.append((not is_near, nearness[other], abs(file.size - size), file))
        found.sort()
        read = accumulate(file.size for *_, file in found)
        count = bisect_right(list(read), _MAX_CANDIDATE_BYTES)
        return tuple(file for *_, file in found[: min(count, _MAX_CANDIDATES)])


def name_likeness(path: str, other: str) -> float:
    """Return how likely a file is the renamed other one, by their names alone.

    It has another folder, or another ending, or a part of the name, or it is in a folder of that name.
    """
    (folder, _, name), (other_folder, _, other_name) = path.rpartition("/"), other.rpartition("/")
    stem, other_stem = _split_name(name)[0], _split_name(other_name)[0]
    if folder == other_folder and stem == other_stem:
        return _SAME_STEM
    if folder == other_folder and (_is_part(stem, other_stem) or _is_part(other_stem, stem)):
        return _PART_OF_NAME
    is_package = other_folder == f"{folder}/{stem}".lstrip("/")
    return _SAME_NAME if name == other_name or is_package else 0.0


def _is_part(one: str, other: str) -> bool:
    return other.endswith((f"_{one}", f"-{one}")) or other.startswith((f"{one}_", f"{one}-"))


def _split_name(name: str) -> tuple[str, str]:
    """Return the name of a file without its ending and a dot that hides it, in lower case, and the ending."""
    stem, _, ending = name.lstrip(".").rpartition(".")
    return (stem or ending).lower(), ending if stem else ""
