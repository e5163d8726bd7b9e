"""Check citations: take the base of each, and find what became of it. `entries` does so for a memory file.

The base of a citation is what its lines were at the entry's date, as git has it. For an entry of today, and where git
has nothing, it is the file as it was when echod first saw the entry. Without a base nothing is claimed about lines.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from echod.evidence.git_objects import IndexEntry, ObjectError
from echod.evidence.repository import (
    MAX_COMMITS,
    MAX_FILE_BYTES,
    Commit,
    OutsideError,
    ProjectFile,
    ProjectFiles,
    Repository,
    UnreadableEvidenceError,
    find_repository,
    name_likeness,
)
from echod.memory.evidence.compare import EvidenceState, Located, contains, locate
from echod.memory.evidence.fingerprint import (
    CHECKSUM_BYTES,
    TOKEN_BYTES,
    CitedPlace,
    Fingerprint,
    TokenizedFile,
    line_sums,
    parse_citation,
    read_content,
    read_sketch,
    similarity,
    sketch_of,
    take_fingerprint,
)
from echod.state.fingerprints import StoredFingerprint

_MIN_RENAMED: Final = 0.5
"""How alike a file and its renamed successor are."""
_MIN_PERHAPS_RENAMED: Final = 0.15
"""The same for a file that also has the cited lines, at least in part."""
_MIN_FOUND_TOKENS: Final = 12
"""Tokens of cited lines by which they are found in a file of another name and content."""
_MIN_MERGED_LINES: Final = 4
"""Lines of a removed file that another one has, if it became a part of that one."""
_MAX_COMMON: Final = 2
"""A line of a removed file that more files have does not show where the file went."""
_MAX_ALIKE: Final = 6
"""Files that are searched for the cited lines of a removed one."""
_MAX_OLD_CONTENTS: Final = 64
_RECENT_COMMITS: Final = 300
_CLOCK_SLACK_SECONDS: Final = 5.0


class CheckedCitation(NamedTuple):
    """A citation as written, its state, and where the lines are now, as `path:first-last` (None if nowhere).

    `file` is the file that alone decided the state, together with the base; None if other files had a part in it.
    """

    cite: str
    state: EvidenceState
    at: str | None = None
    file: Path | None = None


class CheckedEntry(NamedTuple):
    """The citations of an entry. `taken` are the bases that were not stored yet."""

    citations: tuple[CheckedCitation, ...]
    taken: Mapping[str, StoredFingerprint]


class EvidenceChange(NamedTuple):
    """The commit that changed cited lines. None if the change is not committed yet."""

    commit: str | None
    at: float | None = None


class EvidenceVerifier:
    """Checks the citations of one project's entries. Keeps what it has read; for one thread and a short time."""

    def __init__(self, project: Path, now: float) -> None:
        self._files = ProjectFiles(project)
        self._now = now
        self._today = datetime.fromtimestamp(now).astimezone().date()
        self._repositories: dict[Path, Repository | None] = {}
        self._old_contents: dict[str, TokenizedFile | None] = {}

    def close(self) -> None:
        """Close the files of repositories."""
        for repository in {id(r): r for r in self._repositories.values() if r is not None}.values():
            repository.close()
        self._repositories.clear()

    def check(self, cites: Iterable[str], day: date | None, stored: Mapping[str, StoredFingerprint]) -> CheckedEntry:
        """Return the states of an entry's citations.

        Args:
            cites: the citations as written.
            day: the day on which the entry was written or verified; None if it is unknown.
            stored: the bases that are stored, by citation.
        """
        checked: list[CheckedCitation] = []
        taken: dict[str, StoredFingerprint] = {}
        for cite in cites:
            citation = parse_citation(cite)
            if citation is None:
                checked.append(CheckedCitation(cite, EvidenceState.UNKNOWN))
                continue
            base = stored.get(cite)
            is_stored = base is not None and base.fingerprint is not None
            if base is None or not is_stored:
                # Nothing could be taken before, which a file that was written since may change.
                base = self.take_base(citation, day)
                if base.fingerprint is not None or cite not in stored:
                    taken[cite] = base
            found = self._check(citation, base.fingerprint, base)
            if not is_stored and found.file != Path(os.path.normpath(self._files.project / citation.path)):
                found = found._replace(file=None)  # the file was searched for in the project
            checked.append(found)
        return CheckedEntry(tuple(checked), taken)

    def take_base(self, citation: CitedPlace, day: date | None) -> StoredFingerprint:
        """Return the base of a citation of an entry of this day."""
        try:
            path = self._files.relative_path(citation.path)
            if day is not None and day < self._today:
                found = self._base_from_git(path, citation, day)
                if found is not None:
                    return found
            path = self._present_path(path)
            if path and not (self._files.project / path).is_dir():
                content = self._files.read(path)
                return StoredFingerprint(take_fingerprint(path, content, citation.first, citation.last), self._now)
        except (OutsideError, UnreadableEvidenceError):
            pass  # nothing is known: no fingerprint
        return StoredFingerprint(None, self._now)

    def _present_path(self, path: str) -> str:
        """Return the path of a cited file as it is in the project; "" if there is no such file, or several."""
        if self._files.exists(path):
            return path
        found = self._files.ending_with(path)
        return found[0] if len(found) == 1 else ""

    def _base_from_git(self, path: str, citation: CitedPlace, day: date) -> StoredFingerprint | None:
        repository = self._repository_of(path)
        if repository is None:
            return None
        try:
            inside = str((self._files.project / path).relative_to(repository.root))
            moment = datetime.combine(day + timedelta(days=1), datetime.min.time()).astimezone().timestamp()
            for find in (repository.commit_at, partial(repository.first_with, inside)):
                commit = find(moment)
                blob = commit and repository.blob_name(commit, inside)
                if commit is None or blob is None:
                    continue
                content = self._old_content(repository, blob)
                if content is None:
                    continue
                fingerprint = take_fingerprint(path, content, citation.first, citation.last)
                if fingerprint is not None:
                    return StoredFingerprint(fingerprint, float(commit.at), commit.name)
        except (ObjectError, ValueError):
            return None
        return None

    def _old_content(self, repository: Repository, blob: str) -> TokenizedFile | None:
        """Return a content of the history; None if it is too large. Entries of one day cite the same files."""
        if blob not in self._old_contents:
            if len(self._old_contents) >= _MAX_OLD_CONTENTS:
                self._old_contents.clear()
            data = repository.read_blob(blob)
            self._old_contents[blob] = read_content(data) if len(data) <= MAX_FILE_BYTES else None
        return self._old_contents[blob]

    def _repository_of(self, path: str) -> Repository | None:
        directory = (self._files.project / path).parent
        while not directory.is_dir():
            directory = directory.parent
        return self._repository_at(directory)

    def _repository_at(self, directory: Path) -> Repository | None:
        """Return the repository of a directory, which is that of the one above unless another one begins here."""
        if directory not in self._repositories:
            is_own = os.path.lexists(f"{directory}/.git") or directory == directory.parent
            found = find_repository(directory) if is_own else self._repository_at(directory.parent)
            self._repositories[directory] = found
        return self._repositories[directory]

    # States

    def _check(self, citation: CitedPlace, fingerprint: Fingerprint | None, base: StoredFingerprint) -> CheckedCitation:
        cite = citation.text
        try:
            path = self._files.relative_path(fingerprint.path if fingerprint else citation.path)
            if not self._files.project.is_dir():
                return CheckedCitation(cite, EvidenceState.UNKNOWN)
            is_missing = not self._files.exists(path)
            if is_missing and self._is_in_absent_submodule(path):
                return CheckedCitation(cite, EvidenceState.UNKNOWN)
            if fingerprint is None:
                return self._check_without_base(citation, path)
            if is_missing:
                return self._check_removed(cite, fingerprint, base)
            if self._files.digest(path) == fingerprint.digest:  # nothing has changed, and most files have not
                located = Located(EvidenceState.VALID, fingerprint.first, fingerprint.last)
            else:
                located = locate(fingerprint, self._files.read(path))
        except (OutsideError, UnreadableEvidenceError):
            return CheckedCitation(cite, EvidenceState.UNKNOWN)
        return CheckedCitation(cite, located.state, _place(path, located), self._files.project / path)

    def _is_in_absent_submodule(self, path: str) -> bool:
        """Return whether a missing file belongs to a submodule that is not checked out here."""
        repository = self._repository_of(path)
        head = repository.head() if repository else None
        if repository is None or head is None:
            return False
        try:
            inside = str((self._files.project / path).relative_to(repository.root))
            return repository.is_in_submodule(repository.commit(head), inside)
        except (ObjectError, ValueError):
            return False

    def _check_without_base(self, citation: CitedPlace, path: str) -> CheckedCitation:
        """Return the state by what is on the disk now. Nothing is claimed about lines."""
        present = self._present_path(path)
        if not present:
            # A bare name may be meant relative to any directory, and a path that git never had may be no file at all.
            is_missing = "/" in citation.path and not self._files.ending_with(path) and self._was_committed(path)
            return CheckedCitation(citation.text, EvidenceState.GONE if is_missing else EvidenceState.UNKNOWN)
        state = EvidenceState.VALID if citation.first is None else EvidenceState.UNKNOWN
        at = present if citation.first is None else None
        return CheckedCitation(citation.text, state, at, self._files.project / present)

    def _was_committed(self, path: str) -> bool:
        repository = self._repository_of(path)
        try:
            inside = str((self._files.project / path).relative_to(repository.root)) if repository else ""
            return repository is not None and repository.first_with(inside, 0.0, _RECENT_COMMITS) is not None
        except (ObjectError, ValueError):
            return False

    def _check_removed(self, cite: str, fingerprint: Fingerprint, base: StoredFingerprint) -> CheckedCitation:
        """Return the state of lines whose file is not there: it was renamed, or other files have its lines, or none."""
        since = int((base.taken_at - _CLOCK_SLACK_SECONDS) * 1e9)
        candidates = self._files.rename_candidates(fingerprint.path, fingerprint.size, since, self._is_unchanged(base))
        lines = read_sketch(fingerprint.sketch)
        shared = {file.path: lines & self._files.line_sums(file.path) for file in candidates}
        counts = Counter(line for found in shared.values() for line in found)
        wanted = frozenset(line for line in lines if counts[line] <= _MAX_COMMON)
        found = self._check_renamed(cite, fingerprint, base, {path: found & wanted for path, found in shared.items()})
        if found is not None and found.state is not EvidenceState.GONE:
            return found
        merged = {path: len(found) for path, found in shared.items()}
        return self._check_merged(cite, fingerprint, base, merged) or CheckedCitation(cite, EvidenceState.GONE)

    def _check_renamed(
        self, cite: str, fingerprint: Fingerprint, base: StoredFingerprint, shared: Mapping[str, AbstractSet[int]]
    ) -> CheckedCitation | None:
        """Return the state in the new file that is most like the removed one; None if no new file is like it.

        `shared` are the candidates with the removed file's lines that each has and hardly another one: licences and
        imports are in many files, and make none of them a successor.
        """
        enough = max(1.0, _MIN_PERHAPS_RENAMED * len(fingerprint.sketch) / CHECKSUM_BYTES)
        alike = []
        for path, found in shared.items():
            likeness = name_likeness(fingerprint.path, path)
            if len(found) >= enough or (found and likeness):
                likeness += similarity(fingerprint.sketch, sketch_of(self._files.line_sums(path)))
            if likeness >= _MIN_PERHAPS_RENAMED:
                alike.append((likeness, path))
        alike.sort(reverse=True)
        new = (item for item in alike if self._old_data(base, item[1]) is None)
        for likeness, path in islice(new, _MAX_ALIKE):
            located = locate(fingerprint, self._files.read(path))
            if likeness >= _MIN_RENAMED or located.state is not EvidenceState.GONE:
                return _found_elsewhere(cite, path, located)
        return None

    def _check_merged(
        self, cite: str, fingerprint: Fingerprint, base: StoredFingerprint, shared: Mapping[str, int]
    ) -> CheckedCitation | None:
        """Return the state in a file that got lines of the removed one, and had not the cited ones before."""
        wanted = read_sketch(fingerprint.sketch)
        is_distinct = len(fingerprint.tokens) >= _MIN_FOUND_TOKENS * TOKEN_BYTES and fingerprint.copies == 1
        ranked = sorted(((count, path) for path, count in shared.items() if count), reverse=True)
        for count, path in ranked[:_MAX_ALIKE]:
            old = self._old_data(base, path) or b""
            got = wanted & (self._files.line_sums(path) - line_sums(old))
            is_merged = count >= _MIN_MERGED_LINES and len(got) >= _MIN_RENAMED * len(wanted)
            if not got or not (is_merged or is_distinct):
                continue
            content = self._files.read(path)
            if not is_merged and not contains(fingerprint, content):
                continue
            located = locate(fingerprint, content)
            if located.state is EvidenceState.GONE or (not is_merged and located.state is EvidenceState.CHANGED):
                continue
            if old and contains(fingerprint, read_content(old)):
                continue  # another copy, which was there before
            return _found_elsewhere(cite, path, located)
        return None

    def _is_unchanged(self, base: StoredFingerprint) -> Callable[[ProjectFile], bool]:
        """Return a function that returns whether a file is surely as it was when a base was taken."""
        known: dict[str, Mapping[str, IndexEntry]] = {}

        def is_unchanged(file: ProjectFile) -> bool:
            folder, _, name = file.path.rpartition("/")
            if folder not in known:
                known[folder] = self._unchanged_files(base, folder)
            entry = known[folder].get(name)
            return entry is not None and entry[1:] == (file.size & 0xFFFFFFFF, file.modified_ns, file.changed_ns)

        return is_unchanged

    def _unchanged_files(self, base: StoredFingerprint, folder: str) -> Mapping[str, IndexEntry]:
        """Return the files of a folder that git's index has as they were when a base was taken."""
        directory = self._files.project / folder
        repository = self._repository_at(directory) if base.commit else None
        if repository is None or base.commit is None:
            return {}
        try:
            inside = str(directory.relative_to(repository.root))
            return repository.unchanged_files(base.commit, "" if inside == "." else inside)
        except (ObjectError, ValueError):
            return {}

    def _old_data(self, base: StoredFingerprint, path: str) -> bytes | None:
        """Return the content that a file had beside the cited one; None if it was not there, or that is unknown."""
        repository = self._repository_of(path) if base.commit else None
        if repository is None or base.commit is None:
            return None
        try:
            inside = str((self._files.project / path).relative_to(repository.root))
            blob = repository.blob_name(repository.commit(base.commit), inside)
            return None if blob is None else repository.read_blob(blob)
        except (ObjectError, ValueError):
            return None

    # History

    def find_change(self, fingerprint: Fingerprint, state: EvidenceState) -> EvidenceChange | None:
        """Return which commit changed, moved or removed cited lines; None if the history does not show it."""
        if state in (EvidenceState.VALID, EvidenceState.UNKNOWN):
            return None
        repository = self._repository_of(fingerprint.path)
        head = repository.head() if repository else None
        if repository is None or head is None:
            return None
        try:
            path = str((self._files.project / fingerprint.path).relative_to(repository.root))
            return _find_change(_PathHistory(repository, path, fingerprint, state), repository.commit(head))
        except (ObjectError, ValueError):
            return None


class _PathHistory:
    """Whether the cited lines were still as they are cited, by commit."""

    def __init__(self, repository: Repository, path: str, fingerprint: Fingerprint, state: EvidenceState) -> None:
        self.repository = repository
        self._path = path
        self._fingerprint = fingerprint
        self._is_move = state is EvidenceState.MOVED
        self._known: dict[str | None, bool] = {None: False}

    def blob(self, commit: Commit) -> str | None:
        return self.repository.blob_name(commit, self._path)

    def holds(self, blob: str | None) -> bool:
        if blob not in self._known:
            content: TokenizedFile = read_content(self.repository.read_blob(blob or "")[:MAX_FILE_BYTES])
            self._known[blob] = (
                locate(self._fingerprint, content).state is EvidenceState.VALID
                if self._is_move
                else contains(self._fingerprint, content)
            )
        return self._known[blob]


def _find_change(history: _PathHistory, commit: Commit) -> EvidenceChange | None:
    """Return the first commit, seen from now on, whose parents all have the lines and which does not."""
    blob = history.blob(commit)
    if history.holds(blob):
        return EvidenceChange(None)
    for _ in range(MAX_COMMITS):
        parents = [history.repository.commit(name) for name in commit.parents]
        blobs = [history.blob(parent) for parent in parents]
        following = next((p for p, b in zip(parents, blobs, strict=True) if b == blob), None)
        if following is None:
            following = next((p for p, b in zip(parents, blobs, strict=True) if not history.holds(b)), None)
        if following is None:
            return EvidenceChange(commit.name, float(commit.at)) if parents else None
        commit, blob = following, history.blob(following)
    return None


def _found_elsewhere(cite: str, path: str, located: Located) -> CheckedCitation:
    state = EvidenceState.MOVED if located.state is EvidenceState.VALID else located.state
    return CheckedCitation(cite, state, _place(path, located))


def _place(path: str, located: Located) -> str | None:
    if located.state in (EvidenceState.GONE, EvidenceState.UNKNOWN):
        return None
    if not located.first:
        return path
    return f"{path}:{located.first}" if located.first == located.last else f"{path}:{located.first}-{located.last}"
