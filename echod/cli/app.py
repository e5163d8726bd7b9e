"""The command line as a tree: every command with its help and an example. Thin: parse, call, print.

Each command's work is in a module of its own, imported when the command runs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from echod import __version__
from echod.cli.shell import Shell

app = typer.Typer(
    name="echod",
    help="Keeps the Markdown memory of coding agents healthy: nothing lost, nothing mysterious, nothing in the way.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts (docs/json.md).")]
Project = Annotated[Path, typer.Argument(metavar="PATH", help="A project, or any directory in one.")]
OnlyHere = Annotated[Path | None, typer.Argument(metavar="[PATH]", help="Only this project.", show_default=False)]


def _example(command: str) -> str:
    return f"Example: {command}"


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"echod {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Read the settings from FILE.", show_default=False)
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version
    cwd = Path.cwd()
    environ = dict(os.environ)
    if config is not None:
        environ["ECHOD_CONFIG"] = str(cwd / config.expanduser())
    context.obj = Shell(environ, cwd)


def _shell(context: typer.Context) -> Shell:
    shell = context.obj
    assert isinstance(shell, Shell)  # noqa: S101  (set above for every command)
    return shell


@app.command(epilog=_example("echod add ~/src/my-project"))
def add(context: typer.Context, path: Project) -> None:
    """Maintain the memory of a project from now on."""
    from echod.cli.projects import add

    add(_shell(context), path)


@app.command(epilog=_example("echod remove ~/src/my-project"))
def remove(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A registered project, which may be gone.")],
) -> None:
    """Stop maintaining a project. Its memory stays as it is."""
    from echod.cli.projects import remove

    remove(_shell(context), path)


@app.command(epilog=_example("echod projects --json"))
def projects(context: typer.Context, json: Json = False) -> None:
    """List the projects that are maintained."""
    from echod.cli.projects import list_projects

    list_projects(_shell(context), as_json=json)


@app.command(epilog=_example("echod run --once ~/src/my-project --wait 60"))
def run(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="With --once: only these projects.")
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

        run_once(_shell(context), paths or [], wait)
    elif paths or wait:
        raise typer.BadParameter("paths and --wait go with --once; the service maintains what `echod add` registered.")
    else:
        from echod.cli.serve import serve

        serve(_shell(context))


@app.command(epilog=_example("echod status --json"))
def status(context: typer.Context, json: Json = False) -> None:
    """How is it? What waits, and why? What needs a person?

    Ends with 0 (healthy), 1 (needs a look), 3 (not running) or 4 (running, but not answering).
    """
    from echod.cli.status import show_status

    show_status(_shell(context), as_json=json)


@app.command(epilog=_example("echod doctor ~/src/my-project"))
def doctor(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[PATH]", help="Of the projects, only this one.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Is everything as it must be? Says what is wrong, and how to mend it.

    Ends with 1 if something is wrong. Writes into no project.
    """
    from echod.cli.doctor import doctor

    doctor(_shell(context), path, as_json=json)


@app.command(epilog=_example("echod gate ~/src/my-project"))
def gate(context: typer.Context, path: Project = Path(), json: Json = False) -> None:
    """May the project's memory be written now, and if not, why and until when?"""
    from echod.cli.gate import show_gate

    show_gate(_shell(context), path, as_json=json)


jobs_app = typer.Typer(help="List jobs; try one again.", invoke_without_command=True, rich_markup_mode=None)
app.add_typer(jobs_app, name="jobs", epilog=_example("echod jobs --json"))


@jobs_app.callback()
def jobs(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many to show, the newest first.")] = 20,
    json: Json = False,
) -> None:
    """List what was done, what waits, and what failed."""
    if context.invoked_subcommand is None:
        from echod.cli.jobs import list_jobs

        list_jobs(_shell(context), limit, as_json=json)


@jobs_app.command(epilog=_example("echod jobs retry 17"))
def retry(context: typer.Context, job: Annotated[int, typer.Argument(metavar="ID", help="The job's number.")]) -> None:
    """Try a job again that failed or was given up."""
    from echod.cli.jobs import retry_job

    retry_job(_shell(context), job)


Where = Annotated[
    Path | None,
    typer.Argument(metavar="[PATH]", help="A project; default: the current directory's, else all.", show_default=False),
]


@app.command(epilog=_example("echod log ~/src/my-project --limit 5"))
def log(
    context: typer.Context,
    path: Where = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many to show, the newest first.")] = 20,
    json: Json = False,
) -> None:
    """List what was changed in memories, by which job, and what was undone."""
    from echod.cli.log import show_log

    show_log(_shell(context), path, limit, as_json=json)


@app.command(epilog=_example("echod undo --last ~/src/my-project --dry-run"))
def undo(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB] [PATH]", help="The job's number, as `echod log` shows it, or --last; and the project."
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
    undo(_shell(context), job, path, dry_run=dry_run, yes=yes, force=force)


@app.command(epilog=_example("echod review --json"))
def review(context: typer.Context, path: Where = None, json: Json = False) -> None:
    """List what a person should look at: doubtful changes, findings that were given back."""
    from echod.cli.review import show_review

    show_review(_shell(context), path, as_json=json)


OneRole = Annotated[str | None, typer.Option("--role", metavar="NAME", help="Only this role.", show_default=False)]
Show = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="DATE", help="As if it were that day, like 2026-11-20.", show_default=False),
]
PlanJson = Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON for scripts (docs/json.md).")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Anyway = Annotated[bool, typer.Option("--force", help="Write although a workflow runs.")]
Entry = Annotated[str, typer.Argument(metavar="ENTRY", help="The entry's id, or how it begins.")]


@app.command(epilog=_example("echod prune ~/src/my-project --dry-run"))
def prune(
    context: typer.Context,
    path: Where = None,
    role: OneRole = None,
    dry_run: Show = False,
    as_of: AsOf = None,
    json: PlanJson = False,
    yes: Yes = False,
    force: Anyway = False,
) -> None:
    """Archive what memory files hold beyond their limit. docs/lifecycle.md tells what goes first.

    Every entry that goes stands in the role's archive, and the file as it was beside it.
    """
    from echod.cli.upkeep import maintain
    from echod.state.job import JobKind

    maintain(
        _shell(context),
        JobKind.PRUNE,
        path,
        role,
        dry_run=dry_run,
        as_of=as_of,
        as_json=json,
        yes=yes,
        force=force,
    )


@app.command(epilog=_example("echod compress ~/src/my-project --dry-run"))
def compress(
    context: typer.Context,
    path: Where = None,
    role: OneRole = None,
    dry_run: Show = False,
    as_of: AsOf = None,
    json: PlanJson = False,
    yes: Yes = False,
    force: Anyway = False,
) -> None:
    """Put what knowledge files say of one topic into a few lines, where they are over their limit.

    Every reference is kept, and every text that goes stands in the role's archive.
    """
    from echod.cli.upkeep import maintain
    from echod.state.job import JobKind

    maintain(
        _shell(context),
        JobKind.COMPRESS,
        path,
        role,
        dry_run=dry_run,
        as_of=as_of,
        as_json=json,
        yes=yes,
        force=force,
    )


@app.command(epilog=_example("echod explain 4f1c ~/src/my-project --as-of 2027-03-01"))
def explain(context: typer.Context, entry: Entry, path: Where = None, as_of: AsOf = None, json: Json = False) -> None:
    """Why does an entry stay, or go? Its score, each rule, and when that would apply."""
    from echod.cli.entries import explain_entry

    explain_entry(_shell(context), entry, path, as_of=as_of, as_json=json)


@app.command("record-access", epilog=_example("echod record-access 4f1c 93ab --session $SESSION"))
def record_access(
    context: typer.Context,
    entries: Annotated[list[str], typer.Argument(metavar="ENTRY...", help="Ids of entries, or how they begin.")],
    session: Annotated[
        str | None,
        typer.Option(
            "--session", metavar="KEY", help="Whatever names the session; it counts once.", show_default=False
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="PATH", help="The project; default: the one we are in.", show_default=False),
    ] = None,
) -> None:
    """Entries were of use: each counts as referenced, once for a session or workflow where that is known."""
    from echod.cli.entries import record_access

    record_access(_shell(context), entries, project, session)


@app.command(epilog=_example("echod pin 4f1c ~/src/my-project"))
def pin(context: typer.Context, entry: Entry, path: Where = None) -> None:
    """Keep an entry as it is for a while (`policy.pin_days`), whatever the rules say."""
    from echod.cli.entries import pin

    pin(_shell(context), entry, path)


@app.command(epilog=_example("echod unpin 4f1c ~/src/my-project"))
def unpin(context: typer.Context, entry: Entry, path: Where = None) -> None:
    """Let the rules hold again for an entry."""
    from echod.cli.entries import unpin

    unpin(_shell(context), entry, path)


@app.command(epilog=_example("echod pause ~/src/my-project"))
def pause(
    context: typer.Context,
    path: OnlyHere = None,
) -> None:
    """Write no memory until `echod resume`; what comes up meanwhile waits."""
    from echod.cli.projects import pause

    pause(_shell(context), path)


@app.command(epilog=_example("echod resume ~/src/my-project"))
def resume(
    context: typer.Context,
    path: OnlyHere = None,
) -> None:
    """Go on after `echod pause`."""
    from echod.cli.projects import resume

    resume(_shell(context), path)


@app.command(epilog=_example("echod scrub ~/src/my-project --dry-run"))
def scrub(
    context: typer.Context,
    path: Project = Path(),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what stands where.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Also change etched entries and notes.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write although a workflow runs.")] = False,
    json: Json = False,
) -> None:
    """Find secrets in a project's memory, archives and backups, and take them out.

    Says file, entry and kind, never the secret. Ends with 1 while one is left.
    """
    from echod.cli.scrub import scrub

    scrub(_shell(context), path, dry_run=dry_run, yes=yes, force=force, as_json=json)


workflow_app = typer.Typer(
    help="Tell echod that a tool is at work, or done.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(workflow_app, name="workflow")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Any name; `end` takes the same.")]
In = Annotated[Path, typer.Option("--project", metavar="PATH", help="The project; default: the current directory.")]


@workflow_app.command(epilog=_example("echod workflow begin nightly-refactoring --ttl 90"))
def begin(
    context: typer.Context,
    name: Name,
    project: In = Path(),
    pid: Annotated[
        int | None,
        typer.Option("--pid", min=1, help="It ends with this process; default: CLAUDE_PID.", show_default=False),
    ] = None,
    ttl: Annotated[float, typer.Option("--ttl", metavar="MINUTES", min=0.01, help="It ends by itself then.")] = 240.0,
) -> None:
    """Keep echod from writing the project's memory until the workflow ends."""
    from echod.cli.workflow import begin

    begin(_shell(context), name, project, pid, ttl)


@workflow_app.command(epilog=_example("echod workflow end nightly-refactoring"))
def end(context: typer.Context, name: Name, project: In = Path()) -> None:
    """The workflow is over."""
    from echod.cli.workflow import end

    end(_shell(context), name, project)


service_app = typer.Typer(
    help="Hand the service to systemd or launchd, and take it back.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(service_app, name="service")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Force = Annotated[bool, typer.Option("--force", help="Also replace or remove a service file that echod did not write.")]


@service_app.command(epilog=_example("echod service install"))
def install(context: typer.Context, force: Force = False, dry_run: DryRun = False) -> None:
    """Install, enable and start the service for this user, and see that it answers."""
    from echod.cli.service import install

    install(_shell(context), force=force, dry_run=dry_run)


@service_app.command(epilog=_example("echod service uninstall"))
def uninstall(context: typer.Context, force: Force = False, dry_run: DryRun = False) -> None:
    """Stop the service and remove it. Memories, state and settings stay."""
    from echod.cli.service import uninstall

    uninstall(_shell(context), force=force, dry_run=dry_run)


@service_app.command(epilog=_example("echod service start"))
def start(context: typer.Context) -> None:
    """Start the installed service, and see that it answers."""
    from echod.cli.service import start

    start(_shell(context))


@service_app.command(epilog=_example("echod service stop"))
def stop(context: typer.Context) -> None:
    """Stop the service; it comes back with the next login."""
    from echod.cli.service import stop

    stop(_shell(context))


@service_app.command(epilog=_example("echod service restart"))
def restart(context: typer.Context) -> None:
    """Stop and start the service, and see that it answers."""
    from echod.cli.service import restart

    restart(_shell(context))


@service_app.command(epilog=_example("echod service logs --lines 50 --follow"))
def logs(
    context: typer.Context,
    lines: Annotated[int, typer.Option("--lines", min=1, help="How many.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", help="Go on showing new lines.")] = False,
) -> None:
    """Show what the service logged."""
    from echod.cli.service import logs

    logs(_shell(context), lines, follow=follow)


@app.command(epilog=_example("echod init ~/src/my-project --roles reviewer,workers,team"))
def init(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[PATH]", help="The project; default: the one we are in.", show_default=False),
    ] = None,
    roles: Annotated[
        str | None, typer.Option("--roles", metavar="A,B,...", help="Only these roles.", show_default=False)
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout", metavar="rune|claude", help="Where: .rune/echoes or .claude/echoes.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be made.")] = False,
) -> None:
    """Give a project a memory, and maintain it. Makes what is missing and asks nothing.

    Without --layout it is where the project has one; else .claude/echoes if only .claude is there, else .rune/echoes.
    """
    from echod.cli.init import init

    init(_shell(context), path, roles, layout, dry_run=dry_run)


claude_app = typer.Typer(help="Connect Claude Code with echod.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(claude_app, name="claude")


@claude_app.command(epilog=_example("echod claude check"))
def check(context: typer.Context) -> None:
    """Say what is connected and what is not, and how to connect it.

    Ends with 1 if something is missing. Changes nothing: Claude Code's settings are its own.
    """
    from echod.cli.claude import check

    check(_shell(context))


@claude_app.command("plugin-dir", epilog=_example("echod claude plugin-dir"))
def plugin_dir() -> None:
    """Print the directory of the plugin that comes with echod, for --plugin-dir."""
    from echod.cli.claude import plugin_dir

    plugin_dir()


@app.command(epilog=_example("echod hook task-completed < event.json"))
def hook(
    event: Annotated[
        str,
        typer.Argument(metavar="EVENT", help="task-completed, session-start, session-end, pre-compact or stop."),
    ],
) -> None:
    """Take an event of an agent's session from standard input. For hooks, not for people.

    Says nothing, always ends with 0, and needs neither the service nor valid settings. docs/claude-code.md has more.
    """
    from echod.hooks.run import run

    try:
        run([event], os.environ, sys.platform)
    finally:
        os._exit(0)
