"""`echod promote`: make a solution for people of an entry, in `docs/solutions/` of its project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.execute import (
    Change,
    Confirmation,
    JobRefusedError,
    JobRunner,
    ManualJob,
    WriteOptions,
    make_change,
    report_already_so,
    require_write_mode,
)
from echod.cli.output import sanitize, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import MemoryMatch, entry_heading, find_to_change, read_facts
from echod.clock import local_date
from echod.errors import os_reason
from echod.jobs.base import JobOutcome, JobResources
from echod.jobs.solutions import SolutionPlan, plan_solution, promote
from echod.memory.policy.scoring import History
from echod.memory.prompt_injection import find_injection
from echod.memory.solutions.document import SolutionCategory, VerifiedBy
from echod.memory.solutions.extraction import SolutionParts, extract_parts, extract_parts_of_text
from echod.memory.solutions.promotion import PromotionRequest, PromotionRule, RuleFailure
from echod.memory.text import pluralize
from echod.state.job import JobKind

_CONFIRMATION = "verified"
"""The word that the user types to confirm a solution about security."""

_EDITOR_TEMPLATE = """\
# Describe the problem for a reader who uses no agents. Lines above "Symptom:" are ignored.
# {title}

Symptom: {symptom}

Root cause: {root_cause}

Solution: {solution}
"""


@click.command("promote", epilog=example("echod promote 4f1c --category performance --tags database,queries"))
@options.entry
@options.project_path_or_all
@click.option(
    "--category",
    type=click.Choice([category.value for category in SolutionCategory], case_sensitive=False),
    metavar="CATEGORY",
    required=True,
    help=f"One of {', '.join(SolutionCategory)}.",
)
@click.option("--symptom", metavar="TEXT", help="The problem as a reader sees it.  [default: the entry's own]")
@click.option("--root-cause", metavar="TEXT", help="The cause of it.  [default: the entry's own]")
@click.option("--solution", metavar="TEXT", help="The remedy.  [default: the entry's own]")
@click.option("--tags", metavar="A,B", help="Search words.  [default: the entry's own, else from the title]")
@click.option("--title", metavar="TEXT", help="The title.  [default: the entry's]")
@click.option("--raise", "raises", is_flag=True, help="Make a confident inscribed entry etched with it.")
@options.dry_run
@options.yes
@options.force
@pass_command_context
def promote_(
    context: CommandContext,
    *,
    entry: str,
    path: Path | None,
    category: str,
    symptom: str | None,
    root_cause: str | None,
    solution: str | None,
    tags: str | None,
    title: str | None,
    raises: bool,
    dry_run: bool,
    yes: bool,
    force: bool,
) -> None:
    """Promote an entry to a solution in docs/solutions.

    The entry must be etched and confirmed, and must have a problem, its cause and its solution. Parts that are not
    labelled in it are given as options, or written in your editor at a terminal. A solution about security needs a
    confirmation that you type.
    """
    request = PromotionRequest(
        category=SolutionCategory(category),
        symptom=symptom,
        root_cause=root_cause,
        solution=solution,
        tags=None if tags is None else tuple(tags.split(",")),
        title=title,
        raises=raises,
    )
    with context.open_read_context() as read_context:
        (match,) = find_to_change(context, read_context, path, [entry])
        facts = read_facts(read_context, match.role, local_date(context.now()), match.document)
    sessions = facts.histories.get(match.id, History()).references
    request = _ask_missing_parts(context, match, request)
    planned = _plan(context, match, request, sessions)
    preview = "\n".join([entry_heading(match), *_plan_lines(planned)])
    others = [failure for failure in planned.failures if failure.rule is not PromotionRule.SECURITY]
    if others:
        raise _refused_error(match, planned.failures)
    if planned.failures:
        if not context.is_interactive or dry_run:
            raise _refused_error(match, planned.failures)
        require_write_mode(context)
        click.echo(preview)
        preview = ""
        _confirm_security(context)
        request = request._replace(verified_by=VerifiedBy.HUMAN)
        planned = _plan(context, match, request, sessions)
    if _is_up_to_date(match, planned):
        report_already_so(context, f"{match.id} is in {planned.path} already")

    def work(resources: JobResources) -> JobOutcome:
        return promote(resources, match.role, match.id, request, sessions)

    def step(runner: JobRunner) -> str:
        job = ManualJob(JobKind.SOLUTION, match.role, f"the user promotes {match.id} of {match.role.name}")
        return runner.run_multi_role(job, work).describe(match.role.name)

    change = Change(preview, [step], _question(match, planned))
    make_change(context, change, WriteOptions(dry_run, yes, force))


def _plan(context: CommandContext, match: MemoryMatch, request: PromotionRequest, sessions: int) -> SolutionPlan:
    today = local_date(context.now())
    try:
        return plan_solution(match.role, match.id, match.block, request, sessions, today)
    except OSError as error:
        raise JobRefusedError(f"docs/solutions cannot be read: {os_reason(error)}. Nothing was changed.") from error


def _ask_missing_parts(context: CommandContext, match: MemoryMatch, request: PromotionRequest) -> PromotionRequest:
    """Open the user's editor for the parts that neither the options nor the entry have, at a terminal."""
    own = extract_parts(match.block)
    parts = SolutionParts(
        own.symptom if request.symptom is None else request.symptom,
        own.root_cause if request.root_cause is None else request.root_cause,
        own.solution if request.solution is None else request.solution,
    )
    if not context.is_interactive or all((parts.symptom, parts.root_cause, parts.solution)):
        return request
    template = _EDITOR_TEMPLATE.format(
        title=sanitize(match.title),
        symptom=parts.symptom,
        root_cause=parts.root_cause,
        solution=parts.solution or match.block.body,
    )
    edited = click.edit(template, extension=".md")
    if edited is None:  # closed without saving
        return request
    written = extract_parts_of_text(edited)
    return request._replace(symptom=written.symptom, root_cause=written.root_cause, solution=written.solution)


def _confirm_security(context: CommandContext) -> None:
    """Let the user type that the solution is right. `--yes` does not answer this.

    Raises:
        click.exceptions.Exit: the user typed something else.
    """
    context.print_info("It is about security. Agents and people will rely on it.")
    answer: str = click.prompt(f"Type {_CONFIRMATION} if you have verified it yourself", default="", show_default=False)
    if answer.strip() != _CONFIRMATION:
        click.echo("Nothing was changed.")
        raise click.exceptions.Exit(1)


def _plan_lines(planned: SolutionPlan) -> Iterator[str]:
    solution = planned.solution
    yield f"  {'update' if planned.duplicates.update else 'write'} {planned.path}"
    for name, text in (
        ("title", solution.title),
        ("symptom", solution.symptom),
        ("cause", solution.root_cause),
        ("solution", solution.solution),
        ("tags", ", ".join(solution.tags)),
    ):
        yield wrap(sanitize(text) or "-", indent=f"    {name:<9} ")
    for path in planned.duplicates.related:
        yield wrap(f"{path} has a similar cause, and is linked", indent="  ")
    for shared in planned.duplicates.shared_tags:
        tags = ", ".join(shared.tags)
        yield wrap(f"{shared.path} has {pluralize(len(shared.tags), 'tag')} in common: {tags}", indent="  ")
    yield "  The entry gets the line promoted_to."


def _question(match: MemoryMatch, planned: SolutionPlan) -> Confirmation | None:
    if (phrase := find_injection(match.block.text)) is not None:
        return Confirmation(f"It reads like an instruction to agents ({phrase}). Promote it anyway?")
    if planned.duplicates.update:
        return Confirmation(f"Replace {planned.path}? Its present text is archived.")
    if planned.duplicates.shared_tags:
        return Confirmation("A solution with these tags exists. Write another one?")
    return None


def _is_up_to_date(match: MemoryMatch, planned: SolutionPlan) -> bool:
    entry = match.block.entry
    names_it = entry is not None and any(f.name == "promoted_to" and f.value == planned.path for f in entry.fields)
    file = match.role.store.project / planned.path
    return names_it and file.is_file() and file.read_bytes() == planned.data


def _refused_error(match: MemoryMatch, failures: tuple[RuleFailure, ...]) -> JobRefusedError:
    lines = [f"{match.id} was not promoted. Nothing was changed."]
    lines += [f"  {failure.rule}: {failure.reason} {failure.remedy}" for failure in failures]
    return JobRefusedError("\n".join(lines))
