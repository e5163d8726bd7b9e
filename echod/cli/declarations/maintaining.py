"""The commands for the service's work: their names, options and help. See `cli/declarations`."""

from __future__ import annotations

from typing import Final

import click

from echod.cli import commands, options
from echod.cli.options import PATH, Number, complete_project
from echod.cli.root import CommandGroup, example, implemented_by


@click.command(epilog=example("echod run --once ~/src/my-project --wait 60"))
@click.argument("paths", metavar="[PATH]...", type=PATH, nargs=-1, help="With --once: only these projects.")
@click.option("--once", is_flag=True, help="Process everything that is due, and exit.")
@click.option(
    "--wait",
    metavar="SECONDS",
    type=Number(min=0),
    default=0.0,
    show_default=True,
    help="With --once: the time to wait for deferred jobs.",
)
@click.option("--now", is_flag=True, help="With --once and a PATH: also do first prunes that wait for your review.")
@click.option("--all", "in_all", is_flag=True, help="With --once: all registered projects, as without a PATH.")
@implemented_by(lambda: commands.run.run)
def run() -> None:
    """Run the service in the foreground, or once with --once.

    With --once, a running service does the work and its results are shown. Exits with 1 only if a job failed.
    The first prune of a long memory file waits a day for your review, as in the service, unless --now is used.
    """


@click.command(epilog=example("echod consolidate ~/src/my-project --dry-run"))
@options.project_path_to_change
@options.in_all
@options.only_role
@options.dry_run
@options.as_of
@options.plan_json
@options.force
@implemented_by(lambda: commands.prune.consolidate)
def consolidate() -> None:
    """Add the findings of agents to the memory now.

    Files that are still being written wait. Every findings file is kept in the archive of the role.
    """


@click.command(epilog=example("echod ingest tmp/reviews --dry-run"))
@click.argument(
    "paths", metavar="FILE|DIRECTORY...", type=options.PATH, nargs=-1, required=True, help="Reports of workflows."
)
@click.option("--role", metavar="NAME", help="The role that learns; default: the one whose workflow wrote the report.")
@options.dry_run
@options.json
@options.force
@implemented_by(lambda: commands.ingest.ingest)
def ingest() -> None:
    """Turn the reports of workflows into memory now.

    Reads reviews, audits, resolutions, verdicts, gap analyses, work summaries and worker logs. A flaw that
    recurs becomes an entry. Nothing is read twice.
    """


@click.command(epilog=example("echod prune ~/src/my-project --dry-run"))
@options.project_path_to_change
@options.in_all
@options.only_role
@options.dry_run
@options.as_of
@options.plan_json
@options.yes
@options.force
@implemented_by(lambda: commands.prune.prune)
def prune() -> None:
    """Archive entries from memory files over their limit.

    Every removed entry is in the archive of the role, and so is a copy of the file before the change.
    """


@click.command(epilog=example("echod compress ~/src/my-project --dry-run"))
@options.project_path_to_change
@options.in_all
@options.only_role
@options.dry_run
@options.as_of
@options.plan_json
@options.yes
@options.force
@implemented_by(lambda: commands.prune.compress)
def compress() -> None:
    """Shorten knowledge files over their limit.

    Every reference is kept, and every removed text is in the archive of the role.
    """


@click.command(epilog=example("echod migrate ~/src/my-project --dry-run"))
@options.project_path_to_change
@click.option("--layout", is_flag=True, help="Move .claude/echoes to .rune/echoes instead.")
@options.dry_run
@options.yes
@options.force
@implemented_by(lambda: commands.migrate.migrate)
def migrate() -> None:
    """Bring names and layout of a memory up to date.

    Agents, commands and paths of earlier versions of the workflow plugins are renamed in the source and evidence of
    entries, never in a learning. Each changed file is copied to its archive first.

    With --layout, a memory in .claude/echoes moves to .rune/echoes, merged entry by entry if both exist.
    """


@click.command(epilog=example("echod scrub ~/src/my-project --dry-run"))
@options.project_path_or_cwd
@click.option("--dry-run", is_flag=True, help="Only list the secrets.")
@click.option("--include-protected", is_flag=True, help="Also change etched entries and notes.")
@options.force
@options.json
@implemented_by(lambda: commands.scrub.scrub)
def scrub() -> None:
    """Find and remove secrets on disk.

    Prints file, entry and kind, never the secret. Exits with 1 while a secret is left.
    """


@click.command(epilog=example("echod pause ~/src/my-project"))
@options.project_path_to_change
@options.in_all
@implemented_by(lambda: commands.projects.pause)
def pause() -> None:
    """Stop writing to memory until `echod resume`.

    New work stays queued.
    """


@click.command(epilog=example("echod resume ~/src/my-project"))
@options.project_path_to_change
@options.in_all
@implemented_by(lambda: commands.projects.resume)
def resume() -> None:
    """Resume writing to memory."""


_NOW: Final = "now"


class _SyncGroup(CommandGroup):
    """The group whose command without a name is the exchange, so that `echod sync PATH` works."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with `now` in front where they name no subcommand."""
        is_named = any(word in self.commands or word in ctx.help_option_names for word in args[:1])
        return super().parse_args(ctx, args if is_named else [_NOW, *args])


@click.group(cls=_SyncGroup, invoke_without_command=True, epilog=example("echod sync"))
def sync() -> None:
    """Keep the memory of several clones and machines together.

    Without a subcommand, or with a PATH, it exchanges the memory with its remote: `echod sync now`.
    """


@sync.command(_NOW, epilog=example("echod sync now"))
@options.project_path_or_cwd
@options.force
@implemented_by(lambda: commands.sync.now)
def sync_now() -> None:
    """Exchange the memory with its remote.

    Merges what other machines pushed by entry, as one job that `echod undo` reverses, and pushes the result. A secret
    holds the push.
    """


@sync.command("setup", epilog=example("echod sync setup"))
@options.project_path_or_cwd
@click.option("--remote", metavar="URL", help="A repository for a memory that git ignores.")
@options.dry_run
@implemented_by(lambda: commands.sync.setup)
def sync_setup() -> None:
    """Let git merge memory by entry, or name a remote.

    Adds lines to the project's .gitattributes, which travels with it, and a merge driver to the configuration of this
    clone, which does not. Run it once in each clone. Where echod is missing, git merges by line as before.

    With --remote, the memory is one that git ignores. It is exchanged with a branch of its own in that repository, by
    `echod sync`. A project without a memory gets an empty one.
    """


@sync.command("status", epilog=example("echod sync status"))
@options.project_path_or_cwd
@options.json
@implemented_by(lambda: commands.sync.status)
def sync_status() -> None:
    """Show how memory is merged here.

    Runs the registered merge driver on made files, and lists the files that wait for an exchange with the remote. Exits
    with 1 if there is no remote and git would not merge by entry.
    """


@sync.command("resolve", epilog=example("echod sync resolve"))
@options.project_path_or_cwd
@options.dry_run
@options.json
@implemented_by(lambda: commands.sync.resolve)
def sync_resolve() -> None:
    """Merge memory files of a merge in conflict.

    For a merge that ran without the merge driver. Merges the versions in git's index by entry, and adds the files
    without a conflict. Git keeps a copy of each file as it was. Exits with 1 while a conflict is left.
    """


@click.command(epilog=example("echod move ~/src/old-name ~/src/new-name"))
@click.argument("old", type=PATH, help="The directory before, of a project or of several.")
@click.argument("new", type=PATH, help="The same directory now.")
@options.dry_run
@implemented_by(lambda: commands.projects.move)
def move() -> None:
    """Tell echod that a project was moved or renamed.

    Its history, undo, ages, pins and pauses go along. Mostly echod recognises a moved project by itself.
    No file of the project is touched: move the directory first.
    """


@click.command(epilog=example("echod remove ~/src/my-project --purge --dry-run"))
@click.argument(
    "path",
    type=PATH,
    shell_complete=complete_project,
    help="A registered project, which may be deleted from the disk.",
)
@click.option("--purge", is_flag=True, help="Also delete all data about the project.")
@options.dry_run
@options.yes
@implemented_by(lambda: commands.projects.remove)
def remove() -> None:
    """Unregister a project.

    With --purge no change of the project can be undone any more: its jobs, references and ages are deleted from the
    database, and the texts of its changes from the journal. Its memory and archives stay in any case.
    """
