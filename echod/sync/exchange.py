"""Exchange the memory of a project with its remote: fetch, merge into the disk, check, push.

Each step can be interrupted and repeated. Text that was merged twice is there once (`memory.branches`), and a push
whose answer was lost is recognized by its commit.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from echod.errors import EchodError, os_reason
from echod.files import read_regular
from echod.jobs.sync import Incoming, role_files
from echod.lazy import lazy_pattern
from echod.memory import KNOWLEDGE_FILE, MAX_FILE_BYTES, MEMORY_FILE
from echod.memory.document import parse
from echod.memory.model import Unreadable
from echod.memory.redact import locate_secrets
from echod.memory.text import pluralize
from echod.store.create import ensure_directory
from echod.store.errors import RefusedError, as_store_error
from echod.store.layout import ARCHIVE, STORE_DIRS, Role, Store, find_roles, find_stores
from echod.sync.repository import (
    MARKER,
    TRAVELS,
    GitError,
    MemoryRepository,
    RemoteSettings,
    check_marker,
    marker_content,
    run_git,
    without_credentials,
)

_MAX_ROUNDS: Final = 5
"""How often another machine may be faster with a push before this one gives up until the next time."""

_SCHEME = lazy_pattern(r"^(?:[a-z+]+://)?(?:[^/@]+@)?")


class HeldPushError(RefusedError):
    """Something must not leave this machine. The others' changes were merged."""


class ExchangeResult(NamedTuple):
    """The result of an exchange: the roles that received something, and whether something was pushed.

    `was_rewritten` is true if the remote lost commits, and `was_damaged` if this machine's repository was replaced.
    """

    pulled: tuple[str, ...]
    pushed: bool
    was_rewritten: bool
    was_damaged: bool = False

    @property
    def summary(self) -> str:
        """The result, in a phrase."""
        parts = [f"{pluralize(len(self.pulled), 'role')} merged"] if self.pulled else []
        parts += ["pushed"] if self.pushed else []
        parts = parts or ["everything is up to date"]
        parts += ["the repository of the exchange was damaged and was replaced"] if self.was_damaged else []
        parts += ["the remote's history was rewritten, so nothing was removed for it"] if self.was_rewritten else []
        return ", ".join(parts)


def remote_settings(project: Path, url: str, environ: Mapping[str, str]) -> RemoteSettings:
    """Return the settings to exchange a project's memory with the repository at `url`.

    The project is identified by its own remote, else by its first commit, and by its directory in that repository, so
    that its path on a machine does not matter.

    Raises:
        EchodError: the project cannot be identified, or its memory must not be sent there.
    """
    url = _absolute(url)
    own_urls = run_git(("config", "--get-regexp", r"^remote\..*\.url$"), environ, cwd=project).text.splitlines()
    own = {line.split(" ")[0]: line.partition(" ")[2] for line in own_urls}
    if _canonical(url) in map(_canonical, own.values()):
        raise EchodError(
            "This is the project's own remote, and its memory is not part of the project. Name another repository."
        )
    tracked = run_git(("ls-files", "--", *map(str, STORE_DIRS)), environ, cwd=project).output
    if tracked.strip():
        raise EchodError("Git tracks this memory, so it travels with the project. Set it up with: echod sync setup")
    identity = _canonical(own.get("remote.origin.url") or next(iter(own.values()), ""))
    if not identity:
        roots = run_git(("rev-list", "--max-parents=0", "HEAD"), environ, cwd=project)
        identity = min(roots.text.split(), default="") if roots.code == 0 else ""
    if not identity:
        raise EchodError(
            f"{project} has no remote and no commit by which other machines could know it. Make a commit first."
        )
    below = run_git(("rev-parse", "--show-prefix"), environ, cwd=project).text.rstrip("/")
    identity += f"/{below}" if below else ""
    digest = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()
    name = re.sub(r"[^A-Za-z0-9-]+", "-", PurePosixPath(identity).name)[:40].strip("-")
    return RemoteSettings(url, f"echod/{name or 'project'}-{digest[:12]}", digest)


def _absolute(url: str) -> str:
    """Return an address that means the same from every directory: only a path depends on the current one."""
    is_path = "://" not in url and ":" not in url.partition("/")[0]
    return os.path.abspath(os.path.expanduser(url)) if is_path else url  # noqa: PTH100, PTH111  links stay as named


def _canonical(url: str) -> str:
    """Return what the addresses of one repository have in common, whether by ssh, https or path."""
    plain = _SCHEME.sub("", url.strip()).replace(":", "/", 1) if "/" in url or ":" in url else url
    return plain.rstrip("/").removesuffix(".git").lower()


def collect(project: Path) -> dict[str, bytes]:
    """Return the files of a project's memory that travel, by their paths below the project.

    Raises:
        EchodError: a file cannot be read.
    """
    files = {}
    for store in find_stores(project):
        for path in _iter_files(store):
            try:
                data = read_regular(project / path, MAX_FILE_BYTES, follow_symlinks=False)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                reason = os_reason(error) if isinstance(error, OSError) else str(error)
                raise EchodError(f"{path} cannot be read, so nothing was exchanged: {reason}.") from error
            files[path] = data
    return files


def _iter_files(store: Store) -> Iterator[str]:
    with as_store_error("list", store.root):
        for role in find_roles(store):
            root = role.path.relative_to(store.project).as_posix()
            names = [MEMORY_FILE, KNOWLEDGE_FILE]
            archive = role.path / ARCHIVE
            if archive.is_dir() and not archive.is_symlink():
                names += sorted(f"{ARCHIVE}/{path.name}" for path in archive.iterdir())
            yield from (path for name in names if TRAVELS.fullmatch(path := f"{root}/{name}"))


def pending(project: Path, repository: MemoryRepository) -> tuple[str, ...]:
    """Return the paths that differ from the last exchange."""
    base = repository.read(repository.resolve("refs/echod/base"))
    return tuple(sorted(path for path, data in collect(project).items() if base.get(path) != data))


def exchange(
    project: Path,
    repository: MemoryRepository,
    settings: RemoteSettings,
    pull: Callable[[Role, Incoming], bool],
    now: float,
) -> ExchangeResult:
    """Bring a project's memory and its remote together. One exchange at a time: the caller holds the worker's lock.

    `pull` merges incoming files into a role, and returns whether anything changed. A repository that a crash of the
    machine damaged is replaced, which is like the first contact with the remote.

    Raises:
        GitError: the remote cannot be used now. The memory is as it was, or merged; nothing is lost.
        WrongRemoteError: the remote has something else.
        HeldPushError: a secret, or a file that cannot be read, must not be pushed.
    """
    repository.remove_stale_locks()
    try:
        return _exchange(project, repository, settings, pull, now)
    except GitError:
        if not repository.is_damaged():
            raise
        repository.recreate(settings)
        return _exchange(project, repository, settings, pull, now)._replace(was_damaged=True)


def _exchange(
    project: Path,
    repository: MemoryRepository,
    settings: RemoteSettings,
    pull: Callable[[Role, Incoming], bool],
    now: float,
) -> ExchangeResult:
    pulled: dict[str, None] = {}
    was_rewritten = False
    for _ in range(_MAX_ROUNDS):
        newest = repository.fetch(settings)
        remote = repository.read(newest)
        if newest is not None:
            check_marker(remote, settings)
            was_rewritten |= repository.was_rewritten(newest)
            base = repository.read(repository.find_base(newest))
            for role in _pull_roles(project, base, remote, pull):
                pulled[role] = None
            repository.record_exchange(newest)
        files = collect(project)
        changed = {path: data for path, data in files.items() if remote.get(path) != data}
        if not changed:
            return ExchangeResult(tuple(pulled), pushed=False, was_rewritten=was_rewritten)
        _require_sendable(changed)
        commit = repository.commit({**changed, MARKER: marker_content(settings.identity)}, newest, now)
        if commit is None:
            return ExchangeResult(tuple(pulled), pushed=False, was_rewritten=was_rewritten)
        if repository.push(settings, commit):
            repository.record_exchange(commit)
            return ExchangeResult(tuple(pulled), pushed=True, was_rewritten=was_rewritten)
    raise GitError("Other machines keep pushing to the remote. Nothing is lost; run echod sync again.")


def _pull_roles(
    project: Path, base: Mapping[str, bytes], remote: Mapping[str, bytes], pull: Callable[[Role, Incoming], bool]
) -> Iterator[str]:
    local = collect(project)
    roots = sorted({PurePosixPath(*PurePosixPath(path).parts[:3]) for path in remote if path != MARKER})
    for root in roots:
        incoming = Incoming(role_files(base, root), role_files(remote, root))
        present = role_files(local, root)
        if all(name in present and incoming.base.get(name) == data for name, data in incoming.remote.items()):
            continue
        if all(present.get(name) == data for name, data in incoming.remote.items()):
            continue
        store = Store(project, project / root.parent)
        if not store.root.is_dir():
            with as_store_error("create", store.root):
                ensure_directory(project, store.root).close()
        if pull(Role(store, root.name), incoming):
            yield root.as_posix()


def _require_sendable(files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        name = PurePosixPath(path).name
        if name in (MEMORY_FILE, KNOWLEDGE_FILE) and isinstance(document := parse(data), Unreadable):
            raise HeldPushError(f"Nothing was pushed, because {path} cannot be read. {document.reason}")
        if secrets := locate_secrets(data):
            raise HeldPushError(
                f"Nothing was pushed, because {path} has a secret in line {secrets[0].line} ({secrets[0].kind}). "
                "Remove it with: echod scrub"
            )


def describe(settings: RemoteSettings) -> str:
    """Return the remote for the user, without credentials."""
    return f"{without_credentials(settings.url)}, branch {settings.branch}"
