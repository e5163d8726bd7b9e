"""Commands about what echod does: run, status, doctor, gate, jobs, log, undo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import Json, Project, Where


@app.command(epilog=example("echod run --once ~/src/my-project --wait 60"))
def run(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH", help="With --once: only these projects.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Do what is due now, and end.")] = False,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="With --once: wait so long for what must wait.")
    ] = 0.0,
) -> None:
    """Be the service, in the foreground; or do once what is due.

    With --once, a running service is handed the work and its outcome is shown. Ends with 1 only if a job failed.
    """
    if once:
        from echod.cli.once import run_once

        run_once(shell_of(context), paths or [], wait)
    elif paths or wait:
        raise typer.BadParameter("paths and --wait go with --once; the service maintains what `echod add` registered.")
    else:
        from echod.cli.serve import serve

        serve(shell_of(context))


@app.command(epilog=example("echod status --json"))
def status(context: typer.Context, json: Json = False) -> None:
    """How is it? What waits, and why? What needs a person?

    Ends with 0 (healthy), 1 (needs a look), 3 (not running) or 4 (running, but not answering).
    """
    from echod.cli.status import show_status

    show_status(shell_of(context), as_json=json)


@app.command(epilog=example("echod doctor ~/src/my-project"))
def doctor(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="Of the projects, only this one.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Is everything as it must be? Says what is wrong, and how to mend it.

    Ends with 1 if something is wrong. Writes into no project.
    """
    from echod.cli.doctor import doctor

    doctor(shell_of(context), path, as_json=json)


@app.command(epilog=example("echod gate ~/src/my-project"))
def gate(context: typer.Context, path: Project = Path(), json: Json = False) -> None:
    """May the project's memory be written now, and if not, why and until when?"""
    from echod.cli.gate import show_gate

    show_gate(shell_of(context), path, as_json=json)


jobs_app = typer.Typer(help="List jobs; try one again.", invoke_without_command=True, rich_markup_mode=None)
app.add_typer(jobs_app, name="jobs", epilog=example("echod jobs --json"))


@jobs_app.callback()
def jobs(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many to show, the newest first.")] = 20,
    json: Json = False,
) -> None:
    """List what was done, what waits, and what failed."""
    if context.invoked_subcommand is None:
        from echod.cli.jobs import list_jobs

        list_jobs(shell_of(context), limit, as_json=json)


@jobs_app.command(epilog=example("echod jobs retry 17"))
def retry(context: typer.Context, job: Annotated[int, typer.Argument(metavar="ID", help="The job's number.")]) -> None:
    """Try a job again that failed or was given up."""
    from echod.cli.jobs import retry_job

    retry_job(shell_of(context), job)


@app.command(epilog=example("echod log ~/src/my-project --limit 5"))
def log(
    context: typer.Context,
    path: Where = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many to show, the newest first.")] = 20,
    json: Json = False,
) -> None:
    """List what was changed in memories, by which job, and what was undone."""
    from echod.cli.log import show_log

    show_log(shell_of(context), path, limit, as_json=json)


@app.command(epilog=example("echod undo --last ~/src/my-project --dry-run"))
def undo(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="JOB|PATH", help="The job's number, as `echod log` shows it, or --last; and the project."
        ),
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="The newest job that was not undone.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would come back.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write although a workflow runs.")] = False,
) -> None:
    """Take back what a job did to a memory.

    The bytes come back exactly if nothing else changed; else what others wrote since stays. Findings that come back
    are not folded in again unless they change. An undo can be undone too, by its own number.
    """
    from echod.cli.undo import job_and_path, undo

    job, path = job_and_path(words or [], last=last)
    undo(shell_of(context), job, path, dry_run=dry_run, yes=yes, force=force)
