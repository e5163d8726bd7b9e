"""The repository of a project's memory: bare, in the state directory, with one branch that it shares with the remote.

It has no work tree of git's, so nothing is checked out and no filter or hook runs. Its commits are a line: each has the
remote's newest as its parent, so the remote never contains anything that was not pushed on purpose.

References: `refs/echod/base` is the last commit of the remote that was merged into the disk, `refs/echod/pushing` the
one of a push whose answer may have been lost, `refs/echod/remote` the newest one that was seen.

Hooks, filters, file system monitors and pagers that a repository configures are programs of others, so each call
switches them off. Transport, credentials, proxies and signatures are the user's and stay. Git never asks a question
here, because nothing answers it in the service.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import EchodError, os_reason
from echod.lazy import lazy_pattern
from echod.paths import make_private_directory
from echod.store.errors import RefusedError

LOCAL_TIMEOUT_SECONDS: Final = 60.0
NETWORK_TIMEOUT_SECONDS: Final = 300.0
_MAX_REASON = 200
_SSH_COMMAND = "ssh -o BatchMode=yes -o ConnectTimeout=20"
"""Unless the user set another one, which would be replaced by this."""

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
_REMOVED_VARIABLES = lazy_pattern(r"GIT_(?!SSH$|SSH_COMMAND$|SSH_VARIANT$|ASKPASS$|PROXY|SSL_|HTTP_|CONFIG_)")
"""Variables of a git that runs echod would redirect the calls to another repository."""

_REASONS: Final = (
    (lazy_pattern(r"could not read (?:Username|Password)|Authentication failed|Permission denied|terminal prompts dis"
                r"|returned error: 40[13]"),
     "the remote refuses the credentials; check that `git ls-remote` works without a question"),
    (lazy_pattern(r"returned error: 5\d\d"), "the remote's server has a problem of its own"),
    (lazy_pattern(r"Could not resolve host|unable to access|Connection (?:refused|timed out)|Network is unreachable"),
     "the remote cannot be reached"),
    (lazy_pattern(r"does not appear to be a git repository|[Rr]epository .*not found|not a git repository"),
     "there is no git repository"),
    (lazy_pattern(r"\[(?:remote )?rejected\]|non-fast-forward|fetch first|stale info|failed to (?:lock|update) ref"),
     "the remote rejected the push"),
    (lazy_pattern(r"No space left on device"), "the disk is full"),
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
    return kept


def without_credentials(text: str) -> str:
    """Return a text whose addresses have no user name and password."""
    return re.sub(r"(\w+://)[^/@\s]+@", r"\1", text)


def is_git_work_tree(path: Path) -> bool:
    """Return whether a path is in a work tree, without running git."""
    return any(os.path.lexists(directory / ".git") for directory in (path, *path.parents))


MARKER: Final = ".echod-sync.json"
"""The file in the tree that names the project, so that a wrong remote is noticed."""

TRAVELS: Final = lazy_pattern(
    r"\.(?:rune|claude)/echoes/[A-Za-z0-9_-]{1,128}/"
    r"(?:MEMORY\.md|knowledge\.md|archive/(?:pruned|removed)-\d{4}(?:-\d{1,6})?\.md)"
)
"""The paths that travel: memory, knowledge and archives of entries; no findings, backups or quarantine."""

BASE, PUSHING, SEEN = "refs/echod/base", "refs/echod/pushing", "refs/echod/remote"
_OVERTAKEN: Final = lazy_pattern("non-fast-forward|fetch first|stale info|cannot lock ref|incorrect old")
_NEXT: Final = "refs/echod/next"
_MODE_FILE: Final = b"100644"


class RemoteSettings(NamedTuple):
    """Where a project's memory is pushed: the address, the branch there, and the project's identity."""

    url: str
    branch: str
    identity: str


class WrongRemoteError(RefusedError):
    """The remote has the memory of another project, or something else, where this project's memory would be."""


class MemoryRepository:
    """The repository of one project's memory. `directory` is its git directory."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self.directory = directory
        self._environ = environ

    @property
    def settings(self) -> RemoteSettings | None:
        """The remote; None if none was set up."""
        if not (self.directory / "HEAD").exists():
            return None
        values = (self.git("config", "--get", f"echod.{name}").text for name in RemoteSettings._fields)
        settings = RemoteSettings(*values)
        return settings if all(settings) else None

    def set_up(self, settings: RemoteSettings) -> None:
        """Create the repository, if it does not exist, and set its remote. Another remote starts from nothing."""
        try:
            make_private_directory(self.directory.parent)
            make_private_directory(self.directory)
        except OSError as error:
            raise EchodError(f"{self.directory} cannot be created: {os_reason(error)}.") from error
        self._must(self.git("init", "--quiet", "--bare"), "create the repository")
        if self.settings is not None and self.settings != settings:
            for reference in (BASE, PUSHING, SEEN):
                self.git("update-ref", "-d", reference)
        for name, value in settings._asdict().items():
            self._must(self.git("config", "--replace-all", f"echod.{name}", value), "keep the remote's address")

    def remove_stale_locks(self) -> None:
        """Remove the locks of a git that was killed. Only while nothing else uses the repository."""
        for pattern in ("*.lock", "refs/**/*.lock"):
            for lock in self.directory.glob(pattern):
                with suppress(OSError):  # git names it if it matters
                    lock.unlink()

    def is_damaged(self) -> bool:
        """Return whether objects are missing or unreadable, as after a crash of the machine."""
        return self.git("fsck", "--connectivity-only", "--no-dangling", "--no-progress").code != 0

    def recreate(self, settings: RemoteSettings) -> None:
        """Replace a damaged repository. Its content is on the disk and in the remote; it is kept as `{name}.damaged`.

        Raises:
            EchodError: a directory cannot be renamed or created.
        """
        aside = self.directory.with_name(f"{self.directory.name}.damaged")
        try:
            if aside.exists():
                shutil.rmtree(aside)
            self.directory.rename(aside)
        except OSError as error:
            raise EchodError(f"{self.directory} is damaged and cannot be replaced: {os_reason(error)}.") from error
        self.set_up(settings)

    def fetch(self, settings: RemoteSettings) -> str | None:
        """Fetch the remote's branch, and return its commit; None if the remote has no such branch yet.

        Raises:
            GitError: the remote cannot be used now. Nothing was changed.
        """
        reference = f"refs/heads/{settings.branch}"
        listed = self._network("ls-remote", "--", settings.url, reference)
        self._must(listed, f"read the remote {without_credentials(settings.url)}")
        if not listed.output.strip():
            return None
        fetched = self._network(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", settings.url, f"+{reference}:{SEEN}"
        )
        self._must(fetched, f"fetch from the remote {without_credentials(settings.url)}")
        return self.resolve(SEEN)

    def push(self, settings: RemoteSettings, commit: str) -> bool:
        """Push a commit, and return whether the remote took it. False: it has something newer, fetch again.

        Raises:
            GitError: the remote cannot be used now. Nothing was changed.
        """
        self.set_reference(PUSHING, commit)
        reference = f"refs/heads/{settings.branch}"
        result = self._network("push", "--quiet", "--no-verify", "--", settings.url, f"{commit}:{reference}")
        if result.code and _OVERTAKEN.search(result.error):
            return False
        self._must(result, f"push to the remote {without_credentials(settings.url)}")
        return True

    def find_base(self, commit: str) -> str | None:
        """Return the newest commit that both the disk and `commit` contain; None if they have nothing in common."""
        for reference in (PUSHING, BASE):
            known = self.resolve(reference)
            if known is not None and self.git("merge-base", "--is-ancestor", known, commit).code == 0:
                return known
        base = self.resolve(BASE)
        return None if base is None else self.git("merge-base", base, commit).text or None

    def was_rewritten(self, commit: str) -> bool:
        """Return whether the remote's branch lost commits that it had at the last exchange."""
        base = self.resolve(BASE)
        return base is not None and self.git("merge-base", "--is-ancestor", base, commit).code != 0

    def read(self, commit: str | None) -> dict[str, bytes]:
        """Return the files of a commit that travel, and the marker, by their paths. Everything else in it is ignored.

        Raises:
            GitError: the repository is damaged.
        """
        if commit is None:
            return {}
        listed = self._must(self.git("ls-tree", "-r", "-z", "--full-tree", commit), "list what the remote has")
        blobs: dict[str, str] = {}
        for line in filter(None, listed.output.split(b"\0")):
            fields, _, raw = line.partition(b"\t")
            mode, kind, blob = fields.split()
            path = os.fsdecode(raw)
            if mode == _MODE_FILE and kind == b"blob" and (path == MARKER or TRAVELS.fullmatch(path)):
                blobs[path] = blob.decode()
        batch = self._must(
            self.git("cat-file", "--batch", data="".join(f"{blob}\n" for blob in blobs.values()).encode()),
            "read what the remote has",
        )
        return dict(zip(blobs, _split_batch(batch.output), strict=True))

    def commit(self, files: Mapping[str, bytes], parent: str | None, at: float) -> str | None:
        """Write a commit with these files on top of `parent`, and return it; None if they are as in `parent`."""
        stamp = f"echod <echod@localhost> {int(at)} +0000"
        lines = [f"commit {_NEXT}\ncommitter {stamp}\ndata 11\necho memory\n".encode()]
        lines += [f"from {parent}\n".encode()] if parent else []
        for path, data in sorted(files.items()):
            lines.append(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
        self.git("update-ref", "-d", _NEXT)
        self._must(self.git("fast-import", "--quiet", "--force", data=b"".join([*lines, b"done\n"])), "write a commit")
        commit = self._must(self.git("rev-parse", "--verify", _NEXT), "write a commit").text
        if (
            parent
            and self.git("rev-parse", f"{commit}^{{tree}}").text == self.git("rev-parse", f"{parent}^{{tree}}").text
        ):
            return None
        return commit

    def resolve(self, reference: str) -> str | None:
        """Return the commit of a reference; None if there is none, or if it was lost."""
        result = self.git("rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}")
        return result.text if result.code == 0 else None

    def set_reference(self, reference: str, commit: str) -> None:
        """Set a reference to a commit."""
        self._must(self.git("update-ref", reference, commit), "record the exchange")

    def record_exchange(self, commit: str) -> None:
        """Record that the disk contains everything of a commit of the remote."""
        self.set_reference(BASE, commit)
        self.git("update-ref", "-d", PUSHING)

    def git(self, *arguments: str, data: bytes = b"") -> GitResult:
        """Run git in this repository."""
        return run_git(arguments, self._environ, data=data, variables=self._variables)

    def _network(self, *arguments: str) -> GitResult:
        variables = self._variables
        own = (name in self._environ for name in ("GIT_SSH_COMMAND", "GIT_SSH"))
        if not any(own) and not self.git("config", "--get", "core.sshCommand").text:
            variables["GIT_SSH_COMMAND"] = _SSH_COMMAND
        return run_git(arguments, self._environ, variables=variables, timeout=NETWORK_TIMEOUT_SECONDS)

    @property
    def _variables(self) -> dict[str, str]:
        return {"GIT_DIR": str(self.directory)}

    def _must(self, result: GitResult, action: str) -> GitResult:
        if result.code:
            raise GitError(f"Git cannot {action}: {result.reason}. Nothing is lost; run echod sync again.")
        return result


def marker_content(identity: str) -> bytes:
    """Return the content of the file that names the project."""
    return json.dumps({"schema": 1, "project": identity}, sort_keys=True).encode() + b"\n"


def check_marker(files: Mapping[str, bytes], settings: RemoteSettings) -> None:
    """Check that a commit of the remote has this project's memory. Raises WrongRemoteError if not."""
    if files.get(MARKER) != marker_content(settings.identity):
        raise WrongRemoteError(
            f"The branch {settings.branch} of {without_credentials(settings.url)} does not have this project's memory. "
            "Nothing was changed. Name another remote: echod sync setup --remote URL"
        )


def _split_batch(output: bytes) -> list[bytes]:
    """Return the contents in the output of `git cat-file --batch`."""
    contents = []
    position = 0
    while position < len(output):
        end = output.index(b"\n", position)
        size = int(output[position:end].rpartition(b" ")[2])
        contents.append(output[end + 1 : end + 1 + size])
        position = end + size + 2
    return contents
