"""The commands by which the user changes a memory: their names, options and help. See `cli/declarations`."""

from __future__ import annotations

import click

from echod.cli import commands, options
from echod.cli.options import PATH_OR_NAME, complete_entry, complete_job, complete_pack
from echod.cli.root import CommandGroup, example, implemented_by
from echod.memory.model import SolutionCategory


@click.command(epilog=example("echod remember 'Use uv, never pip.'"))
@click.argument("text", help="The text of the note; - reads it from standard input.")
@click.option("--title", metavar="TITLE", help="The title; default: the beginning of the text.")
@options.project_option
@options.dry_run
@options.force
@implemented_by(lambda: commands.memory.remember)
def remember() -> None:
    """Add a note to a project's memory.

    It is added at once, also while a workflow or another agent is at work.
    """


@click.command(epilog=example("echod pin 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@implemented_by(lambda: commands.entries.pin)
def pin() -> None:
    """Keep an entry from being removed for some time."""


@click.command(epilog=example("echod unpin 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@implemented_by(lambda: commands.entries.unpin)
def unpin() -> None:
    """Remove the pin of an entry."""


@click.command("raise", epilog=example("echod raise 4f1c etched"))
@options.entry
@click.argument(
    "layer", type=click.Choice(options.SettableLayer, case_sensitive=False), help="The new layer of the entry."
)
@options.project_path_or_all
@options.dry_run
@options.yes
@options.force
@implemented_by(lambda: commands.entries.raise_)
def raise_() -> None:
    """Move an entry to another layer.

    No rule changes etched entries and notes. Only you give these layers and take them away.
    """


@click.command(epilog=example("echod forget 4f1c ~/src/my-project"))
@options.entry
@options.project_path_or_all
@options.in_global
@options.dry_run
@options.yes
@options.force
@implemented_by(lambda: commands.entries.forget)
def forget() -> None:
    """Move an entry to the archive."""


@click.command(epilog=example("echod restore 4f1c ~/src/my-project"))
@click.argument("entry", required=False, shell_complete=complete_entry, help="An entry id, or a unique prefix of one.")
@options.project_path_or_all
@options.in_global
@click.option("--auto-memory", is_flag=True, help="Restore lost files of Claude Code's own memory from a copy.")
@click.option(
    "--copy",
    metavar="N",
    type=options.WholeNumber(1),
    help="With --auto-memory: the copy, whose files also replace those that differ.",
)
@options.dry_run
@click.option("--yes", is_flag=True, help="With --auto-memory: do not ask for confirmation.")
@options.force
@implemented_by(lambda: commands.entries.restore)
def restore() -> None:
    """Restore an archived entry.

    If the archive has several texts of an entry, the newest is restored. Of an entry that was shortened in steps it is
    the text before the first of them.

    With --auto-memory lost files of Claude Code's own memory are restored, of a project or of a directory that has
    copies.
    """


@click.command(epilog=example("echod undo --last ~/src/my-project --dry-run"))
@click.argument(
    "words",
    metavar="[JOB|PATH]...",
    type=PATH_OR_NAME,
    nargs=-1,
    shell_complete=complete_job,
    help="The job's number from `echod log`, unless --last is given, and a project.",
)
@click.option("--last", is_flag=True, help="Undo the newest job that is not undone.")
@click.option("--all", "in_all", is_flag=True, help="With --last: the newest job of all registered projects.")
@click.option("--dry-run", is_flag=True, help="Only show what would be restored.")
@options.yes
@options.force
@implemented_by(lambda: commands.undo.undo)
def undo() -> None:
    """Undo the changes of a job.

    Files are restored byte by byte if nothing else changed them. Otherwise later changes by other programs stay.
    Restored findings are not consolidated again unless they change. An undo can be undone too, by its own number.
    """


@click.command(epilog=example("echod reset ~/src/my-project --role reviewer"))
@options.project_path_or_cwd
@options.only_role
@options.dry_run
@options.yes
@options.force
@implemented_by(lambda: commands.memory.reset)
def reset() -> None:
    """Archive all entries of a project or role and start over.

    Memory and knowledge files are emptied into the archives of their roles. Findings and archives stay.
    """


@click.command(epilog=example("echod elevate 4f1c --domain backend"))
@options.entry
@options.project_path_or_all
@click.option("--domain", metavar="NAME", help="The domain; default: the entry's, else asked for.")
@options.dry_run
@implemented_by(lambda: commands.global_memory.elevate)
def elevate() -> None:
    """Copy an entry to the global store.

    Domains: backend, frontend, devops, database, testing, architecture, design, general.
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
@implemented_by(lambda: commands.remembrance.promote_)
def promote_() -> None:
    """Promote an entry to a solution in docs/solutions.

    The entry must be etched and confirmed, and must have a problem, its cause and its solution. Parts that are not
    labelled in it are given as options, or written in your editor at a terminal. A solution about security needs a
    confirmation that you type. ENTRY is an id, or a reference of a solution (`echo_ref`).
    """


pack_argument = click.argument(
    "pack", shell_complete=complete_pack, help="The name of the pack, as in `echod packs list`."
)


@click.group(cls=CommandGroup)
def packs() -> None:
    """Install and update doc packs."""


@packs.command("list", epilog=example("echod packs list"))
@options.json
@implemented_by(lambda: commands.packs.list_)
def packs_list() -> None:
    """List the available packs, and which of them are installed."""


@packs.command("status", epilog=example("echod packs status --json"))
@options.json
@implemented_by(lambda: commands.packs.status)
def packs_status() -> None:
    """Show the age, edits and updates of the installed packs."""


@packs.command("install", epilog=example("echod packs install fastapi"))
@pack_argument
@options.dry_run
@implemented_by(lambda: commands.packs.install)
def packs_install() -> None:
    """Install a pack for all projects.

    Installing it again changes nothing, and your edits stay.
    """


@packs.command("update", epilog=example("echod packs update fastapi"))
@click.argument(
    "pack", required=False, shell_complete=complete_pack, help="Only this pack; default: all installed ones."
)
@options.dry_run
@implemented_by(lambda: commands.packs.update)
def packs_update() -> None:
    """Update installed packs to the newest version.

    Your edits stay.
    """


@packs.command("remove", epilog=example("echod packs remove fastapi"))
@pack_argument
@options.dry_run
@options.yes
@implemented_by(lambda: commands.packs.remove)
def packs_remove() -> None:
    """Remove an installed pack. Its text is archived."""
