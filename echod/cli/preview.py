"""What the first maintenance of a project will do, said when it is added: the plan of prune, and why it may wait."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from echod.app.context import Lookout
from echod.cli.text import paragraph, plain
from echod.cli.upkeep import Planned, planned
from echod.contract.status import RoleInfo
from echod.errors import EchodError
from echod.inspection.review_items import takes_most
from echod.projects.maintenance import only_on_request
from echod.state.job import JobKind
from echod.store.layout import Role


def preview(lookout: Lookout, role: Role, info: RoleInfo, today: date) -> Iterator[str]:
    """Lines about a role; `info` is what was counted in it. Writes nothing."""
    if info.problem:
        yield paragraph(f"{role.name}: {plain(info.problem)}", indent="    ! ")
        return
    try:
        plan = planned(lookout, JobKind.PRUNE, role, today)
    except EchodError as error:
        yield paragraph(f"{role.name}: {plain(str(error))}", indent="    ! ")
        return
    yield paragraph(_sentence(info, plan), indent=f"    {role.name}: ", hang="      ")
    if plan.changes and (waits := _waits(lookout, role, plan)) is not None:
        yield paragraph(waits, indent="      ")


def _sentence(info: RoleInfo, plan: Planned) -> str:
    size = f"{info.lines} of {info.limit} lines"
    if not plan.changes:
        return f"{size}; {plain(plan.file.note)}" if plan.file.note else f"{size}; nothing is to leave it"
    return f"{size}; the first maintenance: {plan.summary}"


def _waits(lookout: Lookout, role: Role, plan: Planned) -> str | None:
    """Why it is not done at once; None if it is."""
    if lookout.settings.mode != "maintain":
        return 'Nothing will be written, since the settings say mode = "report".'
    if asked := only_on_request(JobKind.PRUNE, role, lookout.care(role.store.project)):
        return f"{asked[:1].upper()}{asked[1:]}."
    if takes_most(plan.file.lines_before, plan.file.lines_after):
        return "That is more than half of the file, so the service holds it for a day, for you to look."
    return None
