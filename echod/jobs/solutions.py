"""The job that makes a solution for people of an entry. `memory.solutions.promotion` has the rules.

It is one job with two commits: the solution first, then `promoted_to` in the entry. A crash between them leaves a
solution whose entry does not name it. The same command completes that, because it finds the solution by its title.
"""

from __future__ import annotations

from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.clock import local_date
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobFailed,
    JobOutcome,
    JobResources,
    Proposal,
    change_set,
    parse_memory,
    plan_and_commit,
    plan_memory_and_commit,
    role_path,
    write_memory,
)
from echod.memory import MEMORY_FILE
from echod.memory.document import round_trips
from echod.memory.edit import with_layer, with_promoted_to
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document, Layer
from echod.memory.redact import redact_bytes
from echod.memory.solutions.document import Solution, render_solution
from echod.memory.solutions.promotion import (
    Duplicates,
    EntryReference,
    PromotionRequest,
    RuleFailure,
    build_solution,
    entry_digest,
    find_duplicates,
    find_failures,
    free_slug,
    slug_of,
)
from echod.remembrance.library import SolutionLibrary, read_library
from echod.state.jobs import JobKind
from echod.store.changes import Append, Write
from echod.store.create import ensure_directory
from echod.store.engine import RoleView
from echod.store.errors import as_store_error
from echod.store.layout import ARCHIVE, SOLUTIONS, Role, solutions_store

_SUFFIX = ".md"
_UNCLOSED = f"a code block or comment in {MEMORY_FILE} is never closed, so that a line more would change its meaning"


class SolutionPlan(NamedTuple):
    """The solution that an entry becomes.

    Attributes:
        role: the role of the entry.
        entry_id: the entry.
        solution: the solution.
        path: its path from the root of the project.
        duplicates: the solutions that are related to it.
        failures: the rules that forbid it.
    """

    role: Role
    entry_id: str
    solution: Solution
    path: str
    duplicates: Duplicates
    failures: tuple[RuleFailure, ...]

    @property
    def data(self) -> bytes:
        """The content of the file."""
        return redact_bytes(render_solution(self.solution))

    @property
    def category_role(self) -> Role:
        """The role of the solutions' store that the file is in: its category."""
        return Role(solutions_store(self.role.store.project), PurePosixPath(self.path).parent.name)


def plan_solution(
    role: Role, entry_id: str, block: Block, request: PromotionRequest, sessions: int, today: date
) -> SolutionPlan:
    """Plan the solution of an entry. Read-only.

    Raises:
        OSError: the present solutions cannot be listed.
    """
    project = role.store.project
    path = str(role.memory.relative_to(project))
    reference = EntryReference(path, entry_id, entry_digest(block))
    solution = build_solution(block, request, reference, today)
    library = read_library(project)
    duplicates = find_duplicates(solution, library.solutions)
    solution = solution._replace(related=duplicates.related)
    failures = (
        *find_failures(block, solution, request, sessions),
        *filter(None, [duplicates.failure]),
    )
    target = duplicates.update or _new_path(library, solution, entry_id)
    solution = _keep_day(solution, library, duplicates.update)
    return SolutionPlan(role, entry_id, solution, target, duplicates, failures)


def _keep_day(solution: Solution, library: SolutionLibrary, update: str | None) -> Solution:
    """Return the solution with the day on which its present file was written, so that an equal one is no change."""
    present = next((one.document for one in library.solutions if one.path == update), None)
    if present is None:
        return solution
    try:
        return solution._replace(day=date.fromisoformat(present.date))
    except ValueError:
        return solution


def _new_path(library: SolutionLibrary, solution: Solution, entry_id: str) -> str:
    directory = SOLUTIONS / solution.category.value
    present = (library.project / directory).iterdir() if (library.project / directory).is_dir() else ()
    taken = {path.name.lower().removesuffix(_SUFFIX) for path in present}
    return str(directory / f"{free_slug(slug_of(solution.title, entry_id), taken)}{_SUFFIX}")


def promote(resources: JobResources, role: Role, entry_id: str, request: PromotionRequest, sessions: int) -> JobOutcome:
    """Write the solution of an entry, and name it in the entry. Every rule is checked again.

    `sessions` is the number of sessions that referenced the entry.
    """
    # One role at a time: a category may have the name of the role, and then both have one lock.
    with resources.open_role(role) as memory:
        planned = _plan_from(memory.session.read(), entry_id, request, sessions, local_date(resources.clock()))
    if not isinstance(planned, SolutionPlan):
        return planned
    category = planned.category_role
    with as_store_error("create", category.path):
        ensure_directory(category.store.project, category.path).close()
    with resources.open_role(category) as solutions:
        written = _write_solution(solutions, planned)
    if not isinstance(written, JobDone):
        return written
    with resources.open_role(role) as memory:
        marked = _mark_promoted(memory, planned, request)
    if not isinstance(marked, JobDone):
        reason = marked.error if isinstance(marked, JobFailed) else marked.reason
        return JobDone(f"{planned.path} is written, and its entry does not name it: {reason}", changed=True)
    return JobDone(f"{entry_id} is in {planned.path}", changed=written.changed or marked.changed)


def _plan_from(
    view: RoleView, entry_id: str, request: PromotionRequest, sessions: int, today: date
) -> SolutionPlan | JobOutcome:
    document = parse_memory(view)
    if isinstance(document, JobBlocked):
        return document
    block = _find_block(view.role.name, document, entry_id)
    if block is None:
        return JobBlocked(f"the file no longer contains entry {entry_id}")
    try:
        planned = plan_solution(view.role, entry_id, block, request, sessions, today)
    except OSError as error:
        return JobFailed(f"the solutions cannot be read: {error}")
    if not round_trips(_with_mark(document, block, planned.path, request)):
        return JobBlocked(_UNCLOSED)
    if planned.failures:
        return JobBlocked(f"{planned.failures[0].reason.rstrip('.')} (rule {planned.failures[0].rule})")
    return planned


def _find_block(role: str, document: Document, entry_id: str) -> Block | None:
    pairs = zip(entry_ids(role, document), document.blocks, strict=True)
    return next((block for identity, block in pairs if identity == entry_id), None)


def _with_mark(document: Document, block: Block, path: str, request: PromotionRequest) -> Document:
    """Return the memory file whose entry names its solution, and is etched if the user asked for that."""
    changed = with_promoted_to(block, path)
    if request.raises:
        changed = with_layer(changed, Layer.ETCHED)
    return document.with_blocks(changed if one is block else one for one in document.blocks)


def _write_solution(context: JobContext, planned: SolutionPlan) -> JobOutcome:
    name = PurePosixPath(planned.path).name

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        present = context.session.read_file(name)
        if present.data == planned.data:
            return JobDone(f"{planned.path} is up to date", changed=False)
        if present.data is not None and planned.duplicates.update is None:
            return JobBlocked(f"{planned.path} was created by another program; try again")
        appends = [] if present.data is None else [_earlier_text(view, name, present.text, today)]
        summary = f"{planned.entry_id} promoted to {planned.path}"
        writes = [Write(role_path(view, name), present.digest, planned.data)]
        return Proposal(change_set(view, JobKind.SOLUTION, summary, writes, appends=appends))

    return plan_and_commit(context, planner)


def _earlier_text(view: RoleView, name: str, text: bytes, today: date) -> Append:
    """Return the archive of a solution that is replaced: the whole file, below a line that names it."""
    header = f"<!-- {name}, as it was until {today.isoformat()} -->\n".encode()
    path = role_path(view, f"{ARCHIVE}/replaced-{today.year}.md")
    return Append(path, header + redact_bytes(text).rstrip(b"\n") + b"\n\n")


def _mark_promoted(context: JobContext, planned: SolutionPlan, request: PromotionRequest) -> JobOutcome:
    def planner(view: RoleView, document: Document, _: date) -> Proposal | JobOutcome:
        block = _find_block(view.role.name, document, planned.entry_id)
        if block is None or block.entry is None:
            return JobBlocked(f"the file no longer contains entry {planned.entry_id}")
        after = _with_mark(document, block, planned.path, request)
        if after == document:
            return JobDone(f"{planned.entry_id} names {planned.path} already", changed=False)
        if not round_trips(after):
            return JobBlocked(_UNCLOSED)
        summary = f"{planned.entry_id} names {planned.path}"
        writes = [write_memory(view, after.render())]
        return Proposal(change_set(view, JobKind.SOLUTION, summary, writes))

    return plan_memory_and_commit(context, planner)
