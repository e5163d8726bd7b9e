"""Register the merge driver in a clone, and find out what git does there with a memory file.

Git's attributes travel with the project; its configuration does not, so each clone is set up once. The registered
command finds echod on the PATH, then at the path that survives an upgrade. Where neither answers, git merges by line
as it would have without echod. Without that, git would keep "our" version alone, without a sign of the other one.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import EchodError, os_reason
from echod.files import read_regular
from echod.store.layout import Store
from echod.sync.repository import GitError, run_git

ATTRIBUTES_FILE: Final = ".gitattributes"
ATTRIBUTE: Final = "merge=echod"
_SETTING: Final = "merge.echod.driver"
_NAME: Final = "merge memory files by entry (echod)"
_FILES: Final = ("*/MEMORY.md", "*/knowledge.md", "*/archive/*.md")
_MAX_ATTRIBUTES_BYTES = 1024 * 1024
_TRIAL_TIMEOUT_SECONDS = 30.0
_ARGUMENTS: Final = "merge-driver %O %A %B %L %P"

_TRIAL_BASE: Final = "# Trial\n\n## Inscribed \u2014 Kept (2026-01-01)\n**Source**: trial\n\nKept.\n"
_TRIAL_OURS: Final = _TRIAL_BASE + "\n## Inscribed \u2014 Ours (2026-01-02)\n**Source**: trial\n\nOurs.\n"
_TRIAL_THEIRS: Final = _TRIAL_BASE + "\n## Inscribed \u2014 Theirs (2026-01-03)\n**Source**: trial\n\nTheirs.\n"


class DriverState(StrEnum):
    """How git merges a memory file that both sides changed in a clone."""

    BY_ENTRY = "by-entry"
    BY_LINE = "by-line"  # the registered command cannot run echod
    NOT_CONFIGURED = "not-configured"  # the attribute is there, the clone's configuration is not
    NO_ATTRIBUTE = "no-attribute"
    ONE_SIDED = "one-sided"  # the registered command would lose the other side's entries
    NO_GIT = "no-git"  # the project is in no work tree of git


class SetupPlan(NamedTuple):
    """The changes that `register` will make: lines of the attributes file, and the command if another is configured."""

    attributes: Path
    lines: tuple[str, ...]
    command: str | None

    @property
    def is_done(self) -> bool:
        """True if there is nothing to change."""
        return not self.lines and self.command is None


def driver_command(program: Sequence[str]) -> str:
    """Return the command line for git's configuration. `program` is from `installation.program_command`."""
    stable = shlex.join(program).replace("%", "%%")
    return (
        f"n=127; if command -v echod >/dev/null 2>&1; then echod {_ARGUMENTS}; n=$?; fi; "
        f"if test $n -gt 1 && command -v {shlex.quote(program[0]).replace('%', '%%')} >/dev/null 2>&1; "
        f"then {stable} {_ARGUMENTS}; n=$?; fi; "
        "if test $n -eq 0; then exit 0; fi; "
        # Python also ends with 1 when it cannot load a program. Then there are no markers.
        'if test $n -eq 1 && grep -q "^<\\{%L\\}" %A; then exit 1; fi; '
        "git merge-file -L ours -L base -L theirs --marker-size=%L %A %O %B"
    )


def plan_setup(project: Path, stores: Sequence[Store], program: Sequence[str], environ: Mapping[str, str]) -> SetupPlan:
    """Return what is missing for git to merge the memory of a project by entry in this clone.

    Raises:
        EchodError: the project is in no git work tree, or its attributes file cannot be read.
    """
    if run_git(("rev-parse", "--is-inside-work-tree"), environ, cwd=project).text != "true":
        raise EchodError(f"{project} is in no git repository, so nothing is merged there.")
    attributes = project / ATTRIBUTES_FILE
    present = set(_read_attributes(attributes).splitlines())
    wanted = [
        f"/{store.root.relative_to(project).as_posix()}/{pattern} {ATTRIBUTE}" for store in stores for pattern in _FILES
    ]
    command = driver_command(program)
    is_same = configured_command(project, environ) == command
    return SetupPlan(attributes, tuple(line for line in wanted if line not in present), None if is_same else command)


def register(project: Path, plan: SetupPlan, environ: Mapping[str, str]) -> None:
    """Carry out a plan: add lines to the attributes file, and write the clone's own configuration.

    Raises:
        EchodError: a file cannot be written. A second call does the rest.
    """
    if plan.lines:
        present = _read_attributes(plan.attributes)
        start = "" if not present or present.endswith("\n") else "\n"
        try:
            with plan.attributes.open("a", encoding="utf-8") as file:
                file.write(start + "".join(f"{line}\n" for line in plan.lines))
        except OSError as error:
            raise EchodError(f"{plan.attributes} cannot be written: {os_reason(error)}.") from error
    if plan.command is not None:
        # In this order, because git refuses every merge while a driver has a name and no command.
        for key, value in ((_SETTING, plan.command), ("merge.echod.name", _NAME)):
            result = run_git(("config", "--local", "--replace-all", key, value), environ, cwd=project)
            if result.code:
                raise GitError(f"The configuration of the clone in {project} cannot be written: {result.reason}.")


def configured_command(project: Path, environ: Mapping[str, str]) -> str | None:
    """Return the merge driver's command that git would run in a clone; None if none is configured."""
    result = run_git(("config", "--get", _SETTING), environ, cwd=project)
    return result.text if result.code == 0 and result.text else None


def find_driver_state(project: Path, stores: Sequence[Store], environ: Mapping[str, str]) -> DriverState:
    """Return what git does in a clone, by asking git for the attributes and by running what is registered."""
    if run_git(("rev-parse", "--is-inside-work-tree"), environ, cwd=project).text != "true":
        return DriverState.NO_GIT
    paths = [f"{store.root.relative_to(project).as_posix()}/role/MEMORY.md" for store in stores]
    found = run_git(("check-attr", "-z", "merge", "--", *paths), environ, cwd=project).output.split(b"\0")[2::3]
    if not paths or any(value != b"echod" for value in found) or len(found) != len(paths):
        return DriverState.NO_ATTRIBUTE
    command = configured_command(project, environ)
    return DriverState.NOT_CONFIGURED if command is None else try_command(command, environ)


def try_command(command: str, environ: Mapping[str, str]) -> DriverState:
    """Run a registered command on three made files, and return what it does with them."""
    with tempfile.TemporaryDirectory(prefix="echod-merge-") as name:
        directory = Path(name)
        for file, text in (("O", _TRIAL_BASE), ("A", _TRIAL_OURS), ("B", _TRIAL_THEIRS)):
            (directory / file).write_text(text, encoding="utf-8")
        line = command.replace("%%", "\0")
        for mark, value in (("%O", "O"), ("%A", "A"), ("%B", "B"), ("%L", "7"), ("%P", "role/MEMORY.md")):
            line = line.replace(mark, value)
        try:
            done = subprocess.run(
                ("sh", "-c", line.replace("\0", "%")),
                cwd=directory,
                env=dict(environ),
                capture_output=True,
                timeout=_TRIAL_TIMEOUT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return DriverState.ONE_SIDED
        merged = (directory / "A").read_text(encoding="utf-8", errors="replace")
    if "\nOurs.\n" not in merged or "\nTheirs.\n" not in merged:
        return DriverState.ONE_SIDED
    return DriverState.BY_ENTRY if done.returncode == 0 and "<<<<<<<" not in merged else DriverState.BY_LINE


def _read_attributes(path: Path) -> str:
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise EchodError(f"{path} is a symbolic link, which git ignores. Replace it with a file.")
        return read_regular(path, _MAX_ATTRIBUTES_BYTES).decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise EchodError(f"{path} cannot be read: {reason}.") from error
