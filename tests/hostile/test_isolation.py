"""Any error in reading one project, pack, event or cache ends nothing else, with a sentence for the user."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from echod.cli.root import run_command_line
from echod.daemon.loop import DaemonLoop
from echod.errors import isolated
from echod.inbox.inbox import Inbox
from echod.memory import document
from echod.paths import paths_from_environment
from echod.projects.registry import ProjectRegistry
from echod.scheduler import needs, reconcile
from echod.state.database import DatabaseUnavailableError
from echod.store.engine import Engine
from tests.daemon.test_loop import running_loop
from tests.hostile.conftest import Target
from tests.support import finding_text, make_project

pytestmark = pytest.mark.slow

ERRORS: dict[str, Callable[[], Exception]] = {
    **{
        errno.errorcode[code]: lambda code=code: OSError(code, os.strerror(code))  # type: ignore[misc]
        for code in (
            errno.EACCES, errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EIO, errno.EMFILE, errno.ENAMETOOLONG,
            errno.ESTALE, errno.EINVAL, errno.EFBIG, errno.ENXIO, errno.EISDIR,
        )
    },
    "not UTF-8": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "surrogates": lambda: UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    "recursion": RecursionError,
    "value": ValueError,
    "overflow": OverflowError,
    "memory": MemoryError,
    "link loop": lambda: RuntimeError("Symlink loop"),
    "type": TypeError,
    "key": KeyError,
    "sqlite": lambda: sqlite3.OperationalError("disk I/O error"),
}  # fmt: skip

_CALLS = ("open", "stat", "lstat", "scandir", "listdir", "readlink", "statvfs", "listxattr", "mkdir", "unlink")


@contextmanager
def failing_below(root: Path, error: Callable[[], Exception], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Raise the error at every system call on a path at or below `root`, and collect those calls."""
    failed: list[str] = []

    def fail_below(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def wrapper(path: Any = ".", *args: Any, **options: Any) -> Any:
            full = _full_path(path, options.get("dir_fd"))
            if full == str(root) or full.startswith(f"{root}/"):
                failed.append(f"{name} {full}")
                raise error()
            return call(path, *args, **options)

        return wrapper

    with monkeypatch.context() as patch:
        for name in _CALLS:
            patch.setattr(os, name, fail_below(getattr(os, name), name))
        yield failed


def _full_path(path: Any, dir_fd: int | None) -> str:
    text = f"/proc/self/fd/{path}" if isinstance(path, int) else os.fsdecode(path)
    if not text.startswith("/") and dir_fd is not None:
        text = f"/proc/self/fd/{dir_fd}/{text}"
    if text.startswith("/proc/self/fd/"):
        number, _, rest = text.removeprefix("/proc/self/fd/").partition("/")
        try:
            base = _readlink(f"/proc/self/fd/{number}")
        except OSError:
            return text
        return f"{base}/{rest}" if rest else base
    return text


_readlink = os.readlink


@pytest.fixture
def innocent(target: Target, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A second project with work to do; both are registered."""
    root = make_project(target.root.parent / "innocent")
    (root / ".rune/echoes/reviewer/MEMORY.md").write_text(finding_text("Money is in cents", date="2026-11-01"))
    own = paths_from_environment(target.home.environ)
    own.create_directories()
    for project in (target.root, root):
        ProjectRegistry(own.projects).add(project)
    for name in [name for name in os.environ if name.startswith(("ECHOD_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name, value in target.home.environ.items():
        monkeypatch.setenv(name, value)
    return root


def add_work(root: Path) -> None:
    (root / ".rune/echoes/reviewer/ash-findings.md").write_text(finding_text("Zebra stripes are counted"))


def has_been_maintained(root: Path) -> bool:
    return "Zebra" in (root / ".rune/echoes/reviewer/MEMORY.md").read_text()


def run(*arguments: str) -> int:
    return run_command_line(arguments)


PLACES = {
    "the project": ".",
    "the store": ".rune/echoes",
    "the role": ".rune/echoes/reviewer",
    "the memory": ".rune/echoes/reviewer/MEMORY.md",
    "the findings": ".rune/echoes/reviewer/ash-findings.md",
    "the knowledge": ".rune/echoes/reviewer/knowledge.md",
    "the archive": ".rune/echoes/reviewer/archive",
    "git": ".git",
    "the markers": "tmp",
    "the settings": ".rune/talisman.yml",
}


SYSTEM_ERRORS = {name: error for name, error in ERRORS.items() if name != "sqlite"}


@pytest.mark.parametrize("error", SYSTEM_ERRORS.values(), ids=SYSTEM_ERRORS)
def test_an_error_anywhere_in_one_project_stops_no_other(
    target: Target, innocent: Path, error: Callable[[], Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    target.findings()
    add_work(innocent)

    with failing_below(target.root, error, monkeypatch) as failed:
        assert run("run", "--once") in {0, 1}
        assert run("status") == 3

    assert failed
    assert has_been_maintained(innocent)


@pytest.mark.parametrize("kind", ["EACCES", "recursion"])
@pytest.mark.parametrize("place", PLACES)
def test_an_error_in_any_place_of_a_project_stops_no_other(
    target: Target, innocent: Path, place: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.findings("ash")
    (target.role / "knowledge.md").write_text("# Knowledge\n\n## One\n\n- a fact\n")
    (target.role / "archive").mkdir()
    (target.root / ".git").mkdir()
    (target.root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (target.root / "tmp").mkdir(exist_ok=True)
    (target.root / ".rune/talisman.yml").write_text("echoes:\n  observe: true\n")
    add_work(innocent)

    with failing_below(target.root / PLACES[place], ERRORS[kind], monkeypatch) as failed:
        assert run("run", "--once") in {0, 1}
        assert run("status", "--json") == 3

    assert failed
    assert has_been_maintained(innocent)


SEAMS: dict[str, tuple[Any, str]] = {
    "the parser": (document, "_parse_uncached"),
    "the gate": (needs, "collect_observations"),
    "the needs": (needs, "_consolidate_need"),
    "the maintenance": (reconcile, "_foreign_activity_days"),
    "recovery": (Engine, "_recover_role"),
    "late writes": (Engine, "_merge_role_late_writes"),
    "notices": (Engine, "collect_notices"),
    "events": (Inbox, "_route"),
}


@pytest.mark.parametrize("error", [*ERRORS], ids=[*ERRORS])
def test_the_service_goes_on_whatever_a_reader_raises(
    target: Target, innocent: Path, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool_event(target)
    with running_loop(target.home) as harness:
        for owner, name in SEAMS.values():
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, raising_for(target.root, getattr(owner, name), ERRORS[error]))
                target.findings("ash")
                harness.loop.reconcile_now.set()
                harness.run_once()
                harness.worker_thread.request_late_merge(harness.loop._discovered.stores)
                harness.worker_thread._run_housekeeping()
        add_work(innocent)
        harness.loop.reconcile_now.set()
        harness.run_once()
        while harness.services.worker.run_next() is not None:
            pass

        assert not harness.fatal_errors
        assert has_been_maintained(innocent)


def raising_for(root: Path, call: Callable[..., Any], error: Callable[[], Exception]) -> Callable[..., Any]:
    """Return the call, which raises where one of its arguments is about the bad project, or about nothing named."""

    def wrapper(*args: Any, **options: Any) -> Any:
        if str(root) in repr(args) or "innocent" not in repr(args):
            raise error()
        return call(*args, **options)

    return wrapper


def spool_event(target: Target) -> None:
    spool = paths_from_environment(target.home.environ).spool
    spool.mkdir(parents=True, exist_ok=True)
    event = json.dumps({"session_id": "s", "cwd": str(target.root), "task_subject": "x", "transcript_path": "/"})
    (spool / f"{1:020d}-{len(event):07x}-1.task-completed.json").write_text(event)


CACHES = {
    "inspections": "inspections.json",
    "status": "status.json",
    "heartbeat": "heartbeat.json",
    "settings": "settings.json",
    "wake": "canary/wake",
}

GARBLED: dict[str, bytes] = {
    "nested": b"[" * 100_000,
    "not UTF-8": b"\xff\xfe{",
    "a number": b"7",
    "a long number": b'{"pid": ' + b"9" * 10_000 + b"}",
    "a list": b"[[], {}]",
    "wrong types": b'{"format": 1, "files": 7, "schema": 1, "health": [], "pid": "x", "echod": {}, "variants": 3}',
    "not finite": b'{"pid": 1, "since": Infinity, "beat_at": NaN, "schema": 1e999}',
    "empty": b"",
}


@pytest.mark.parametrize("content", GARBLED.values(), ids=GARBLED)
@pytest.mark.parametrize("cache", CACHES.values(), ids=CACHES)
def test_a_garbled_cache_is_passed_over(target: Target, innocent: Path, cache: str, content: bytes) -> None:
    file = paths_from_environment(target.home.environ).runtime / cache
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)

    assert run("status") == 3


@pytest.mark.parametrize("cache", [*CACHES.values(), "../state/daemon.lock"])
def test_a_pipe_in_the_place_of_an_own_file_is_not_waited_for(target: Target, innocent: Path, cache: str) -> None:
    own = paths_from_environment(target.home.environ)
    file = own.daemon_lock if cache.endswith("lock") else own.runtime / cache
    file.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(file)

    try:
        assert run("status") in {1, 3}
    except Exception as error:
        assert str(file) in str(error)  # noqa: PT017


def test_an_error_of_the_own_state_is_not_isolated() -> None:
    with pytest.raises(DatabaseUnavailableError), isolated("a project"):
        raise DatabaseUnavailableError("gone")


def test_the_loop_shows_what_it_left_alone(target: Target, innocent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RecursionError

    with running_loop(target.home) as harness:
        monkeypatch.setattr(DaemonLoop, "_queue_findings", fail)
        harness.loop.reconcile_now.set()
        harness.run_once(5.0)

        warnings = {warning.code for warning in harness.status.warnings}

    assert "left-alone" in warnings
