"""The commands that show something: their names, options and help. See `cli/declarations`."""

from __future__ import annotations

from typing import Final

import click

from echod.cli import commands, options
from echod.cli.options import (
    PATH,
    PATH_OR_NAME,
    WholeNumber,
    complete_failed_job,
    complete_job,
    complete_review_item,
    complete_shown,
)
from echod.cli.root import ArgumentOrCommandGroup, CommandGroup, example, implemented_by
from echod.search.documents import DEFAULT_LIMIT, MAX_LIMIT, DocumentKind, SearchScope


@click.command(epilog=example("echod status ~/src/my-project"))
@click.argument("path", type=PATH, required=False, help="Show only this project, with all its roles.")
@click.option("-v", "--verbose", is_flag=True, help="List all roles, waiting jobs, hook events and last runs.")
@click.option("--watch", is_flag=True, help="Show it again every two seconds, until Ctrl-C.")
@options.json
@implemented_by(lambda: commands.status.status)
def status() -> None:
    """Show service health, queued work and warnings.

    One line for each project. Roles are listed only if something needs attention.

    Exits with 0 (healthy), 1 (needs attention), 3 (not running) or 4 (running, but not answering).
    """


class QueryCommand(click.Command):
    """A command whose words may look like options: a text with a space is never one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        end = args.index("--") if "--" in args else len(args)
        texts = [
            text for text in args[:end] if text.startswith("-") and " " in text.strip() and "=" not in text.split()[0]
        ]
        others = [argument for argument in args[:end] if argument not in texts]
        return super().parse_args(ctx, [*others, "--", *texts, *args[end + 1 :]] if texts else args)


_LAYERS = ("etched", "notes", "inscribed", "observations", "traced")


@click.command(cls=QueryCommand, epilog=example("echod search flaky database tests --role reviewer"))
@click.argument(
    "words", metavar="WORDS... [PATH]", type=PATH_OR_NAME, nargs=-1, required=True, help="Words to find, and a project."
)
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in SearchScope]),
    help="Where to search.  [default: project; all outside of a project]",
)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([kind.value for kind in DocumentKind]),
    multiple=True,
    help="Only this kind of text.  [default: memory, knowledge, solution]",
)
@click.option("--role", "roles", metavar="NAME", multiple=True, help="Only entries of this role.")
@click.option(
    "--layer", "layers", type=click.Choice(_LAYERS, case_sensitive=False), multiple=True, help="Only this layer."
)
@click.option("--near", metavar="FILE", type=PATH_OR_NAME, multiple=True, help="Prefer entries that cite this file.")
@click.option(
    "--limit", metavar="N", type=WholeNumber(1, MAX_LIMIT), default=DEFAULT_LIMIT, show_default=True, help="Results."
)
@click.option("--offset", metavar="N", type=WholeNumber(0), default=0, help="Skip this number of results.")
@options.json
@implemented_by(lambda: commands.search.search)
def search() -> None:
    """Find entries, learnings and solutions by words.

    Archived conversations follow where fewer than --limit are found. --kind session searches only in them.
    """


@click.command(epilog=example("echod brief add retries to the upload client --role workers"))
@click.argument(
    "text", metavar="[TEXT]... [PATH]", type=PATH_OR_NAME, nargs=-1, help="The task in words, and a project."
)
@click.option("--role", "roles", metavar="NAME", multiple=True, help="Only entries of this role.")
@click.option(
    "--lines", metavar="N", type=WholeNumber(10, MAX_LIMIT), default=100, show_default=True, help="Lines at most."
)
@options.json
@implemented_by(lambda: commands.search.brief)
def brief() -> None:
    """Summarize the memory that matters for a task."""


@click.command(epilog=example("echod verify ~/src/my-project"))
@click.argument(
    "target", metavar="[PATH|ENTRY]", type=PATH_OR_NAME, required=False, help="A project, or an entry id or prefix."
)
@click.option("--confirm", metavar="ENTRY", help="Record that you checked this entry today and it is right.")
@options.dry_run
@options.force
@options.json
@implemented_by(lambda: commands.explain.verify)
def verify() -> None:
    """Check the files and lines that entries cite.

    A citation is valid, moved, changed, gone or unknown, compared with what the lines were when the entry was written.
    Nothing is removed because of it.
    """


@click.command(epilog=example("echod show reviewer"))
@click.argument(
    "target",
    metavar="[PATH|ROLE|ENTRY]",
    type=PATH_OR_NAME,
    required=False,
    shell_complete=complete_shown,
    help="A project, a role, or an entry id or prefix.",
)
@options.project_path_or_all
@options.in_global
@options.json
@implemented_by(lambda: commands.show.show)
def show() -> None:
    """Show roles, entries or one entry."""


@click.command(epilog=example("echod explain 4f1c ~/src/my-project --as-of 2027-03-01"))
@options.entry
@options.project_path_or_all
@options.as_of
@click.option("-v", "--verbose", is_flag=True, help="List every rule, also those that do not apply.")
@options.json
@implemented_by(lambda: commands.explain.explain)
def explain() -> None:
    """Explain why an entry stays or leaves.

    Begins with one sentence. Then come the score with its weights, and the rules.
    For an archived conversation (conversation-012), list its sources and what was left out.
    """


@click.command(epilog=example("echod gate ~/src/my-project"))
@options.project_path_or_cwd
@options.json
@implemented_by(lambda: commands.gate.gate)
def gate() -> None:
    """Show whether a project's memory may be written now.

    If not, show why and until when. The exit code is 0 in both cases.
    """


MAX_JOB_ID: Final = 2**63 - 1
"""The largest number that the database can give a job."""


@click.group(cls=CommandGroup, invoke_without_command=True, epilog=example("echod jobs --json"))
@options.limit
@options.json
@implemented_by(lambda: commands.log.jobs)
def jobs() -> None:
    """List jobs, or retry one."""


@jobs.command("retry", epilog=example("echod jobs retry 17"))
@click.argument(
    "job",
    metavar="ID",
    type=WholeNumber(1, MAX_JOB_ID),
    shell_complete=complete_failed_job,
    help="The number of the job.",
)
@implemented_by(lambda: commands.log.retry)
def jobs_retry() -> None:
    """Retry a job that failed or was given up."""


@click.command(epilog=example("echod log 7"))
@click.argument(
    "target",
    metavar="[JOB|PATH]",
    type=PATH_OR_NAME,
    required=False,
    shell_complete=complete_job,
    help="A job's number, or a project; default: the current directory's, else all.",
)
@click.option("--recall", is_flag=True, help="List the entries that hooks showed to agents instead.")
@options.limit
@click.option("-v", "--verbose", is_flag=True, help="With a job: show all lines of each entry.")
@options.json
@implemented_by(lambda: commands.log.log)
def log() -> None:
    """List the changes that echod made, or show one as a diff.

    With the number of a job, the entries that it added, removed and changed are shown with their lines.
    """


@click.command(epilog=example("echod picture ~/src/my-project --html memory.html"))
@options.project_path_or_all
@click.option("--html", metavar="FILE", type=PATH, help="Write a page for a browser instead.")
@options.json
@implemented_by(lambda: commands.picture.picture)
def picture() -> None:
    """Draw the memory over time.

    Shows for each role the lines by layer against the limit, the entries that came and left, and the jobs that were
    undone. It reaches back as far as the journal and the archives do. The page of --html is one file without scripts,
    and loads nothing.
    """


@click.command(epilog=example("echod projects --json"))
@options.json
@implemented_by(lambda: commands.projects.projects)
def projects() -> None:
    """List the registered projects."""


ids_argument = click.argument(
    "ids",
    metavar="ID...",
    nargs=-1,
    required=True,
    shell_complete=complete_review_item,
    help="Ids from `echod review`, or unique prefixes of them.",
)


@click.group(cls=ArgumentOrCommandGroup, invoke_without_command=True, epilog=example("echod review --json"))
@options.project_path_or_all
@options.json
@implemented_by(lambda: commands.review.review)
def review() -> None:
    """List review items, or answer them."""


@review.command("accept", epilog=example("echod review accept 1f0c9a2b --dry-run"))
@ids_argument
@options.only_project_option
@options.dry_run
@options.yes
@options.force
@implemented_by(lambda: commands.review.accept)
def review_accept() -> None:
    """Accept a proposal. `echod review` shows what that changes."""


@review.command("reject", epilog=example("echod review reject 1f0c9a2b 77aa01de"))
@ids_argument
@options.only_project_option
@options.dry_run
@options.yes
@options.force
@implemented_by(lambda: commands.review.reject)
def review_reject() -> None:
    """Reject a proposal. It is hidden unless it changes."""


@review.command("dismiss", epilog=example("echod review dismiss 1f0c9a2b"))
@ids_argument
@options.only_project_option
@options.dry_run
@implemented_by(lambda: commands.review.dismiss)
def review_dismiss() -> None:
    """Hide an item unless it changes. Nothing else happens."""


@click.group(
    cls=ArgumentOrCommandGroup, invoke_without_command=True, epilog=example("echod remembrance performance --json")
)
@click.argument("words", metavar="[CATEGORY|WORDS...]", nargs=-1, help="A category, or words to find.")
@options.project_option
@options.json
@implemented_by(lambda: commands.remembrance.remembrance)
def remembrance() -> None:
    """List, search and check the solutions for people.

    They are in docs/solutions of a project. Outside of a project those of all projects are listed.
    """


@remembrance.command("check", epilog=example("echod remembrance check"))
@options.project_option
@options.json
@implemented_by(lambda: commands.remembrance.check)
def remembrance_check() -> None:
    """Check hashes, front matter, links and symptoms.

    Also lists the solutions that their own symptom does not find. Nothing is
    repaired. The exit code is 1 if anything is stale or broken.
    """


@click.command(epilog=example("echod audit --json"))
@options.json
@implemented_by(lambda: commands.global_memory.audit)
def audit() -> None:
    """List the entries of the global store with their origin."""
