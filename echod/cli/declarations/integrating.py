"""The commands for agents and other programs: their names, options and help. See `cli/declarations`."""

from __future__ import annotations

import click

from echod.cli import commands, options
from echod.cli.options import PATH, PATH_OR_NAME, Number, WholeNumber, complete_entry
from echod.cli.root import CommandGroup, example, implemented_by


@click.group(cls=CommandGroup, epilog=example("echod sessions status"))
def sessions() -> None:
    """Archive the conversations of agents, and search them."""


@sessions.command("init", epilog=example("echod sessions init"))
@click.argument("root", type=PATH, required=False, help="A directory; default: that of the current project.")
@implemented_by(lambda: commands.sessions.init)
def sessions_init() -> None:
    """Create the directory of archives.

    Without ROOT, conversations about the current project are archived from now on.
    """


@sessions.command("archive", epilog=example("echod sessions archive"))
@click.argument(
    "words", metavar="[FILE|SESSION]...", type=PATH_OR_NAME, nargs=-1, help="Transcripts or session ids; default: all."
)
@click.option("--messages", metavar="FILE", type=PATH, help="Archive the message list of a host (JSON).")
@options.archive_root
@options.dry_run
@implemented_by(lambda: commands.sessions.archive)
def sessions_archive() -> None:
    """Archive conversations now.

    A session that was archived before goes on in its archive. A session without a typed prompt is skipped.
    """


@sessions.command("checkpoint", epilog=example("echod sessions checkpoint ~/.claude/projects/-src-app/0c1f.jsonl"))
@click.argument("words", metavar="FILE|SESSION...", type=PATH_OR_NAME, nargs=-1, required=True)
@options.archive_root
@options.dry_run
@implemented_by(lambda: commands.sessions.checkpoint)
def sessions_checkpoint() -> None:
    """Archive a session so far, before its host compacts it.

    EPHEMERAL.md gets no entry. The archive of the same session at its end continues the checkpoint.
    """


@sessions.command("rescue", epilog=example("echod sessions rescue --dry-run"))
@options.archive_root
@options.dry_run
@implemented_by(lambda: commands.sessions.rescue)
def sessions_rescue() -> None:
    """Reconstruct deleted sessions from the host's history.

    The history still has the prompts of sessions whose transcripts the host deleted. Their archives are marked.
    """


@sessions.command("forget", epilog=example("echod sessions forget 12"))
@click.argument("session", help="An archive's number, or a session id.")
@options.archive_root
@options.dry_run
@options.yes
@implemented_by(lambda: commands.sessions.forget_)
def sessions_forget() -> None:
    """Delete the archives of a session and every trace of them.

    This cannot be undone. The session is not archived again unless you name it.
    """


@sessions.command("rebuild", epilog=example("echod sessions rebuild"))
@options.archive_root
@options.dry_run
@implemented_by(lambda: commands.sessions.rebuild)
def sessions_rebuild() -> None:
    """Write ARCHIVE.md again, from the archives."""


@sessions.command("distill", epilog=example("echod sessions distill --apply"))
@options.archive_root
@click.option("--apply", "apply_", is_flag=True, help="Move the heavy sections to topic files.")
@options.dry_run
@options.json
@implemented_by(lambda: commands.sessions.distill)
def sessions_distill() -> None:
    """Analyse MEMORY.md and suggest how to shorten it."""


@sessions.command("list", epilog=example("echod sessions list --limit 5"))
@options.archive_root
@options.limit
@options.json
@implemented_by(lambda: commands.session_views.list_)
def sessions_list() -> None:
    """List archived conversations, the newest first."""


@sessions.command("show", epilog=example("echod sessions show 12"))
@click.argument("session", help="An archive's number, or a session id.")
@options.archive_root
@options.json
@implemented_by(lambda: commands.session_views.show)
def sessions_show() -> None:
    """Show an archived conversation."""


@sessions.command("search", epilog=example('echod sessions search "token refresh" -C 2'))
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-C", "--context", "around", metavar="N", type=WholeNumber(0, 50), default=0, help="Lines around a match."
)
@click.option("--ranked", is_flag=True, help="Sort by relevance to the words, like `echod search`.")
@options.archive_root
@options.limit
@options.json
@implemented_by(lambda: commands.session_views.search)
def sessions_search() -> None:
    """Search archived conversations for a text, in any case."""


@sessions.command("consume", epilog=example("echod sessions consume"))
@options.archive_root
@implemented_by(lambda: commands.session_views.consume)
def sessions_consume() -> None:
    """Print the summaries of the last sessions (EPHEMERAL.md).

    Nothing is cleared.
    """


@sessions.command("status", epilog=example("echod sessions status --json"))
@options.archive_root
@options.json
@implemented_by(lambda: commands.session_views.status)
def sessions_status() -> None:
    """Show the archives of a project, and what waits."""


@click.group(cls=CommandGroup)
def claude() -> None:
    """Connect Claude Code through its plugin."""


@claude.command("check", epilog=example("echod claude check"))
@options.json
@implemented_by(lambda: commands.claude.check)
def claude_check() -> None:
    """Check the connection with Claude Code and suggest fixes.

    Exits with 1 if something is missing. Claude Code's settings are never changed.
    """


@claude.command("setup", epilog=example("echod claude setup --dry-run"))
@click.option("--summary/--no-summary", default=None, help="Give each session a summary of the memory when it starts.")
@click.option("--init/--no-init", default=None, help="Create a memory for the current project.")
@options.dry_run
@options.yes
@implemented_by(lambda: commands.claude.setup)
def claude_setup() -> None:
    """Install the plugin, and test that its reports arrive.

    Asks what else you want, shows the steps and asks again. The plugin is installed by the `claude` program, whose
    files are not edited.
    """


@claude.command("plugin-dir", epilog=example("echod claude plugin-dir"))
@implemented_by(lambda: commands.claude.plugin_dir)
def claude_plugin_dir() -> None:
    """Print the plugin's directory, for claude --plugin-dir."""


@click.command(epilog=example("echod mcp"))
@implemented_by(lambda: commands.search.mcp)
def mcp() -> None:
    """Serve search to an agent through MCP."""


@click.command(epilog=example("echod hook task-completed < event.json"))
@click.argument(
    "event",
    help="The name of the event, such as task-completed or pre-tool-use.",
)
@implemented_by(lambda: commands.claude.hook)
def hook() -> None:
    """Record a hook event of an agent.

    Prints nothing, always exits with 0, and needs neither the service nor valid settings. See docs/claude-code.md.
    """


@click.command("record-access", epilog=example("echod record-access 4f1c 93ab --session $SESSION"))
@click.argument(
    "entries",
    metavar="ENTRY...",
    nargs=-1,
    required=True,
    shell_complete=complete_entry,
    help="Entry ids, or unique prefixes of them.",
)
@click.option("--session", metavar="KEY", help="Identifies the session. Each session counts once.")
@options.project_option
@implemented_by(lambda: commands.entries.record_access)
def record_access() -> None:
    """Record that entries were referenced."""


@click.command("import-access", epilog=example("echod import-access ~/src/my-project --dry-run"))
@options.project_path_or_cwd
@click.option(
    "--database", metavar="FILE", type=options.PATH, help="The plugin's database.  [default: the one in the memory]"
)
@options.dry_run
@options.json
@implemented_by(lambda: commands.entries.import_access)
def import_access() -> None:
    """Import the access log of the workflow plugin's search index."""


@click.group(cls=CommandGroup)
def workflow() -> None:
    """Declare the begin or end of a workflow."""


name_argument = click.argument("name", help="Any name. Use the same for `begin` and `end`.")


@workflow.command("begin", epilog=example("echod workflow begin nightly-refactoring --ttl 90"))
@name_argument
@options.project_or_cwd_option
@click.option("--pid", metavar="PID", type=WholeNumber(min=1), help="End with this process; default: CLAUDE_PID.")
@click.option(
    "--ttl",
    metavar="MINUTES",
    type=Number(min=0.01),
    default=240.0,
    show_default=True,
    help="End after this time in any case.",
)
@implemented_by(lambda: commands.gate.begin)
def workflow_begin() -> None:
    """Keep echod from writing until the workflow ends."""


@workflow.command("end", epilog=example("echod workflow end nightly-refactoring"))
@name_argument
@options.project_or_cwd_option
@implemented_by(lambda: commands.gate.end)
def workflow_end() -> None:
    """End a declared workflow."""


@click.command("merge-driver", epilog=example("echod merge-driver %O %A %B %L %P"))
@click.argument("arguments", nargs=-1, required=True, type=options.PATH_OR_NAME, metavar="BASE OURS THEIRS SIZE PATH")
@implemented_by(lambda: commands.sync.merge_driver)
def merge_driver() -> None:
    """Merge a memory file by entry, for git.

    Git calls this when it merges a file that was changed on both sides. It writes the result over OURS. Exits with 1 if
    one entry was rewritten on both sides, with conflict markers of SIZE characters around it. `echod sync setup`
    registers it.
    """
