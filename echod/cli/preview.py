"""What the first maintenance of a project will do, said when it is added: the plan of prune, and why it may wait."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from echod.app.context import ReadContext
from echod.cli.commands.prune import RoleFilePlan, plan_role_file
from echod.cli.output import sanitize, wrap
from echod.contract.status import RoleInfo
from echod.errors import EchodError
from echod.inspection.review_items import removes_majority
from echod.projects.maintenance import request_only_reason
from echod.state.job import JobKind
from echod.store.layout import Role


def first_prune_lines(read_context: ReadContext, role: Role, info: RoleInfo, today: date) -> Iterator[str]:
    """Lines about a role; `info` is what was counted in it. Writes nothing."""
    if info.problem:
        yield wrap(f"{role.name}: {sanitize(info.problem)}", indent="    ! ")
        return
    try:
        plan = plan_role_file(read_context, JobKind.PRUNE, role, today)
    except EchodError as error:
        yield wrap(f"{role.name}: {sanitize(str(error))}", indent="    ! ")
        return
    yield wrap(_first_prune_sentence(info, plan), indent=f"    {role.name}: ", hang="      ")
    if plan.has_changes and (waits := _delay_reason(read_context, role, plan)) is not None:
        yield wrap(waits, indent="      ")


def _first_prune_sentence(info: RoleInfo, plan: RoleFilePlan) -> str:
    size = f"{info.lines} of {info.limit} lines"
    if not plan.has_changes:
        return f"{size}; {sanitize(plan.file.note)}" if plan.file.note else f"{size}; nothing is to leave it"
    return f"{size}; the first maintenance: {plan.summary}"


def _delay_reason(read_context: ReadContext, role: Role, plan: RoleFilePlan) -> str | None:
    """Why it is not done at once; None if it is."""
    if read_context.settings.mode != "maintain":
        return 'Nothing will be written, since the settings say mode = "report".'
    if asked := request_only_reason(JobKind.PRUNE, role, read_context.maintenance_policy(role.store.project)):
        return f"{asked[:1].upper()}{asked[1:]}."
    if removes_majority(plan.file.lines_before, plan.file.lines_after):
        return "That is more than half of the file, so the service holds it for a day, for you to look."
    return None
