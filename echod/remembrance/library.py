"""List the solutions of a project, and check each against its entry, its links and the conventions.

Files without front matter, READMEs, archives and symbolic links are no solutions. They are left alone and named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import os_reason
from echod.files import read_regular
from echod.memory import MAX_FILE_BYTES, MEMORY_FILE
from echod.memory.document import parse
from echod.memory.evidence.compare import EvidenceState
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.solutions.document import SolutionDocument, UnreadableSolution, read_solution
from echod.memory.solutions.promotion import EntryReference, ExistingSolution, entry_digest, parse_reference
from echod.remembrance.source import list_solution_files
from echod.store.layout import SOLUTIONS, STORE_DIRS, find_stores

_MAX_FILES: Final = 5_000
_SUFFIX: Final = ".md"
_LEGACY_PREFIX: Final = "echoes/"


class SolutionLibrary(NamedTuple):
    """The solutions of a project.

    Attributes:
        project: the root of the project.
        solutions: those that can be read, by path.
        essays: paths of documents without front matter, which are left alone.
        problems: a sentence for each file that cannot be read, by path.
    """

    project: Path
    solutions: tuple[ExistingSolution, ...]
    essays: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()


class SolutionState(StrEnum):
    """The state of a solution."""

    CURRENT = "current"
    STALE = "stale"
    BROKEN = "broken"
    SUPERSEDED = "superseded"


class SolutionCheck(NamedTuple):
    """A solution and what a check of it found, as sentences without a full stop."""

    solution: ExistingSolution
    state: SolutionState
    findings: tuple[str, ...] = ()


def read_library(project: Path) -> SolutionLibrary:
    """Read all solutions of a project.

    Raises:
        OSError: a directory cannot be listed.
    """
    solutions: list[ExistingSolution] = []
    essays: list[str] = []
    problems: list[tuple[str, str]] = []
    for number, file in enumerate(list_solution_files(project)):
        path = str(file.path.relative_to(project))
        if number == _MAX_FILES:
            problems.append((path, f"There are more than {_MAX_FILES} files, and the others are not read."))
            break
        try:
            read = read_solution(read_regular(file.path, MAX_FILE_BYTES, follow_symlinks=False))
        except OSError as error:
            problems.append((path, f"It cannot be read: {os_reason(error)}."))
            continue
        if read is None:
            essays.append(path)
        elif isinstance(read, UnreadableSolution):
            problems.append((path, read.reason))
        else:
            solutions.append(ExistingSolution(path, read))
    return SolutionLibrary(project, tuple(solutions), tuple(essays), tuple(problems))


def check_library(library: SolutionLibrary) -> tuple[SolutionCheck, ...]:
    """Check every solution. Nothing is repaired."""
    memories: dict[Path, Mapping[str, Block] | str] = {}
    return tuple(_check_solution(library, solution, memories) for solution in library.solutions)


def _check_solution(
    library: SolutionLibrary, solution: ExistingSolution, memories: dict[Path, Mapping[str, Block] | str]
) -> SolutionCheck:
    document = solution.document
    broken = [*document.problems, *_broken_links(library.project, solution)]
    stale = []
    if document.echo_ref:
        reference = parse_reference(document.echo_ref)
        if reference is None or not reference.is_complete:
            broken.append(
                "echo_ref is not complete: it needs a path, an id and the 64 hex digits of the hash"
                if reference is None
                else "the hash in echo_ref is abbreviated, so that nothing can be compared with it"
            )
        else:
            found = find_entry_state(library.project, reference, memories)
            stale = [] if found.state is EvidenceState.VALID else [found.reason]
    if document.superseded_by:
        state = SolutionState.SUPERSEDED
        stale = [f"superseded by {document.superseded_by}"]
    elif broken:
        state = SolutionState.BROKEN
    else:
        state = SolutionState.STALE if stale else SolutionState.CURRENT
    return SolutionCheck(solution, state, (*broken, *stale))


def _broken_links(project: Path, solution: ExistingSolution) -> Iterator[str]:
    document = solution.document
    links = [*document.related, *filter(None, [document.superseded_by])]
    for link in links:
        path = link.partition("#")[0]
        if parse_reference(link) is not None or not path.endswith(_SUFFIX):
            continue
        places = (project / path, (project / solution.path).parent / path, project / SOLUTIONS / path)
        if not any(place.is_file() for place in places):
            yield f"{link} does not exist"


class EntryState(NamedTuple):
    """The fate of an entry since a solution was made of it, and a phrase about it if it is not `VALID`.

    `UNKNOWN`: its memory file cannot be read.
    """

    state: EvidenceState
    reason: str = ""


def find_entry_state(
    project: Path, reference: EntryReference, memories: dict[Path, Mapping[str, Block] | str] | None = None
) -> EntryState:
    """Return what became of the entry of a solution. `memories` has the files that were read, and gets those it reads.

    An entry whose text is in the files under another id is the same one.
    """
    memories = {} if memories is None else memories
    digests: set[str] = set()
    problems: list[str] = []
    found = None
    for file in _referenced_files(project, reference.path):
        if file not in memories:
            memories[file] = _read_entries(file)
        memory = memories[file]
        if isinstance(memory, str):
            problems.append(memory)
            continue
        digests |= {entry_digest(block) for block in memory.values()}
        found = found or memory.get(reference.entry_id)
    if reference.digest in digests:
        return EntryState(EvidenceState.VALID)
    if found is not None:
        return EntryState(EvidenceState.CHANGED, f"the entry {reference.entry_id} has changed since")
    if problems:
        return EntryState(EvidenceState.UNKNOWN, problems[0])
    return EntryState(EvidenceState.GONE, f"no memory file has the entry {reference.entry_id} any more")


def _referenced_files(project: Path, path: str) -> list[Path]:
    """Return the memory files that a path may mean: older documents have the paths of earlier layouts."""
    prefixes = [f"{below}/" for below in STORE_DIRS]
    tail = next((path.removeprefix(prefix) for prefix in (*prefixes, _LEGACY_PREFIX) if path.startswith(prefix)), path)
    parts = Path(tail).parts
    if len(parts) != 2 or parts[1] != MEMORY_FILE or ".." in parts:  # noqa: PLR2004  role and file
        return []
    return [file for store in find_stores(project) if (file := store.root / tail).is_file()]


def _read_entries(file: Path) -> Mapping[str, Block] | str:
    try:
        document = parse(read_regular(file, MAX_FILE_BYTES, follow_symlinks=False))
    except OSError as error:
        return f"{file.name} of {file.parent.name} cannot be read: {os_reason(error)}"
    if not isinstance(document, Document):
        return f"{file.name} of {file.parent.name} cannot be read: {document.reason.rstrip('.')}"
    ids = entry_ids(file.parent.name, document)
    return {identity: block for identity, block in zip(ids, document.blocks, strict=True) if identity}


def find_solutions(library: SolutionLibrary, category: str) -> tuple[ExistingSolution, ...]:
    """Return the solutions of a category, by their front matter or their directory."""
    return tuple(
        solution
        for solution in library.solutions
        if category in (solution.document.category, Path(solution.path).parent.name)
    )


def read_document(file: Path, data: bytes) -> SolutionDocument | UnreadableSolution | None:
    """Read one file as `read_library` does. Its category is that of the directory if it has none."""
    read = read_solution(data)
    if isinstance(read, SolutionDocument) and not read.category:
        return read._replace(category=file.parent.name)
    return read
