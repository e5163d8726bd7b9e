"""`echod elevate`: an entry of a project becomes one of the global memory, for all projects of the user."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from echod.app.context import ReadContext, open_read_context
from echod.app.services import Services, open_services
from echod.cli.by_hand import require_write_mode
from echod.cli.commands.packs import retry_while_busy
from echod.cli.context import CommandContext
from echod.cli.execute import JobRefusedError, ManualJob, ManualJobResult, run_manual_job, summary_or_raise
from echod.cli.output import sanitize, short_path, wrap
from echod.cli.targets import MemoryMatch, find_in_memory
from echod.cli.wake import notify_daemon
from echod.clock import local_date
from echod.errors import UsageError
from echod.jobs import elevate as elevate_job
from echod.memory.packs.elevation import ElevationResult, NotEligible, check_eligibility, metadata_value
from echod.memory.packs.manifest import DOMAINS
from echod.memory.prompt_injection import find_injection
from echod.state.job import Job, JobKind
from echod.store.changes import CommitGate
from echod.store.create import create_global_role

_ENTRY_COUNT_WARNING = 50
"""With more entries than this the global memory costs every agent of every project more than it gives."""


def elevate_to_global(
    context: CommandContext, entry: str, path: Path | None, domain: str | None, *, dry_run: bool
) -> None:
    """Write an entry into the global memory.

    Raises:
        UsageError: there is no such entry or domain, or a question cannot be asked.
        EchodError: it cannot be elevated, the sentence says why.
    """
    _check_domain(domain)
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        (found,) = find_in_memory(context, read_context, path, [entry])
        if (reason := check_eligibility(found.block)) is not None:
            raise _elevation_refused_error(found, reason)
        chosen_domain = domain or _entry_domain(found) or _ask_domain()
        plan = _plan_elevation(context, read_context, found, chosen_domain)
    if isinstance(plan, NotEligible):
        raise _elevation_refused_error(found, plan)
    _print_elevation_warnings(found, plan)
    if dry_run:
        click.echo(f"It would be added to {short_path(str(read_context.pack_locations.memory_role.memory))}:")
        click.echo("\n".join(f"  {sanitize(line)}".rstrip() for line in plan.document.blocks[-1].text.splitlines()))
        return
    require_write_mode(context)
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        result = _run_elevate_job(context, services, found, chosen_domain)
    notify_daemon(context)
    context.print_info(
        wrap(f'Elevated "{sanitize(found.title)}" ({chosen_domain}) from {found.role.name} as {plan.id}.', hang="  ")
    )
    context.print_info(result.undo_hint)
    if (number := sum(block.entry is not None for block in plan.document.blocks)) > _ENTRY_COUNT_WARNING:
        text = (
            f"The global memory has {number} entries now; more than {_ENTRY_COUNT_WARNING} are "
            f"a lot for every agent to read."
        )
        click.echo(wrap(text, indent="! "))


def _plan_elevation(
    context: CommandContext, read_context: ReadContext, found: MemoryMatch, domain: str
) -> ElevationResult | NotEligible:
    role = read_context.pack_locations.memory_role
    memory = read_context.reader.read_role(role).memory.data if role.path.is_dir() else None
    return elevate_job.plan_elevation(memory, found.block, found.role, domain, local_date(context.now()))


def _run_elevate_job(context: CommandContext, services: Services, found: MemoryMatch, domain: str) -> ManualJobResult:
    """Do it, as a job of its own. No workflow holds the global memory: it belongs to no project."""
    role = services.read_context.pack_locations.memory_role

    def work(job: Job, gate: CommitGate) -> str:
        create_global_role(role)
        return retry_while_busy(lambda: write(job, gate))

    def write(job: Job, gate: CommitGate) -> str:
        with services.engine.open_role(role) as session:
            return summary_or_raise(
                elevate_job.run(job.id, session, found.block, found.role, domain, gate, context.now)
            )

    reason = f"a person elevates {found.id} of {found.role.name}"
    return run_manual_job(context, services, ManualJob(JobKind.ELEVATE, role, reason), work, force=True)


def _check_domain(domain: str | None) -> None:
    if domain is not None and domain not in DOMAINS:
        raise UsageError(f"{sanitize(domain)!r} is no domain; there are {', '.join(DOMAINS)}.")


def _entry_domain(found: MemoryMatch) -> str | None:
    """The domain that the entry names itself, if it is one."""
    entry = found.block.entry
    domain = metadata_value(entry, "domain").lower() if entry else ""
    return domain if domain in DOMAINS else None


def _ask_domain() -> str:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(f"What is it about? Say --domain with one of {', '.join(DOMAINS)}; nothing was changed.")
    click.echo("\n".join(f"{number:>3}  {domain}" for number, domain in enumerate(DOMAINS, 1)))
    while True:
        answer: str = click.prompt("What is it about")
        if answer in DOMAINS:
            return answer
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(DOMAINS):
            return DOMAINS[int(answer) - 1]


def _print_elevation_warnings(found: MemoryMatch, plan: ElevationResult) -> None:
    if plan.redacted:
        click.echo(wrap("A secret was taken out of it: the global memory is read in every project."))
    if (phrase := find_injection(found.block.text)) is not None:
        click.echo(wrap(f"It reads like an instruction to agents ({phrase}); every project's agents read it."))


def _elevation_refused_error(found: MemoryMatch, reason: NotEligible) -> JobRefusedError:
    return JobRefusedError(f"{found.id} is not elevated: {reason.reason}. Nothing was changed.")
