"""Run the user's git, with nothing that a repository could make it run.

Hooks, filters, file system monitors and pagers that a repository configures are programs of others, so each call
switches them off. Transport, credentials, proxies and signatures are the user's and stay. Git never asks a question
here, because nothing answers it in the service.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import EchodError

LOCAL_TIMEOUT_SECONDS: Final = 60.0
NETWORK_TIMEOUT_SECONDS: Final = 300.0
_MAX_REASON = 200
_SAFE_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "transfer.fsckObjects=true",
)
_REMOVED_VARIABLES = re.compile(r"GIT_(?!SSH$|SSH_COMMAND$|SSH_VARIANT$|ASKPASS$|PROXY|SSL_|HTTP_|CONFIG_)")
"""Variables of a git that runs echod would redirect the calls to another repository."""

_REASONS: Final = (
    (re.compile(r"Could not resolve host|unable to access|Connection (?:refused|timed out)|Network is unreachable"),
     "the remote cannot be reached"),
    (re.compile(r"could not read (?:Username|Password)|Authentication failed|Permission denied|terminal prompts dis"),
     "the remote refuses the credentials; check that `git ls-remote` works without a question"),
    (re.compile(r"does not appear to be a git repository|[Rr]epository .*not found|not a git repository"),
     "there is no git repository"),
    (re.compile(r"\[(?:remote )?rejected\]|non-fast-forward|fetch first|stale info|failed to (?:lock|update) ref"),
     "the remote rejected the push"),
    (re.compile(r"No space left on device"), "the disk is full"),
)  # fmt: skip


class GitError(EchodError):
    """Git failed, or is not installed."""


class GitResult(NamedTuple):
    """The end of a call of git."""

    code: int
    output: bytes
    error: str

    @property
    def text(self) -> str:
        """The output without the line break at its end."""
        return self.output.decode(errors="surrogateescape").rstrip("\n")

    @property
    def reason(self) -> str:
        """Why git failed, in a phrase. Addresses in it are without credentials."""
        for pattern, reason in _REASONS:
            if pattern.search(self.error):
                return reason
        lines = [line for line in self.error.splitlines() if line.startswith(("fatal:", "error:"))]
        line = (lines or self.error.splitlines() or [f"git ended with {self.code}"])[0]
        return without_credentials(line.partition(": ")[2] or line).rstrip(".")[:_MAX_REASON]


def run_git(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    cwd: Path | None = None,
    data: bytes = b"",
    variables: Mapping[str, str] | None = None,
    timeout: float = LOCAL_TIMEOUT_SECONDS,
) -> GitResult:
    """Run git to its end. `data` is its input, and `variables` are added to its environment.

    Raises:
        GitError: git is not installed, or takes longer than `timeout` seconds.
    """
    settings = [word for setting in _SAFE_SETTINGS for word in ("-c", setting)]
    command = ["git", *settings, *arguments]
    try:
        done = subprocess.run(
            command,
            input=data,
            cwd=cwd,
            env={**git_environ(environ), **(variables or {})},
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]} did not end within {timeout:.0f} seconds. Try again later.") from error
    except OSError as error:
        raise GitError("git cannot be run. Install it to keep memory in more than one place.") from error
    return GitResult(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


def git_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which git looks only where its arguments say, asks nothing and writes English."""
    kept = {name: value for name, value in environ.items() if not _REMOVED_VARIABLES.match(name)}
    kept.update(GIT_TERMINAL_PROMPT="0", GIT_OPTIONAL_LOCKS="0", LC_ALL="C", GIT_PAGER="cat")
    if "GIT_SSH_COMMAND" not in environ and "GIT_SSH" not in environ:
        kept["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"
    return kept


def without_credentials(text: str) -> str:
    """Return a text whose addresses have no user name and password."""
    return re.sub(r"(\w+://)[^/@\s]+@", r"\1", text)


def is_git_work_tree(path: Path) -> bool:
    """Return whether a path is in a work tree, without running git."""
    return any(os.path.lexists(directory / ".git") for directory in (path, *path.parents))
