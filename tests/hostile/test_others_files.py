"""Files that others can reach: hard links, special files, directories of other users, any umask, terminal escapes."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

import pytest

from echod.cli.output import SafeTextOutput, escape_unsafe
from echod.doctor.machine import check_directories
from echod.errors import StateError
from echod.files import insecure_file_warnings, open_private_log, write_private
from echod.hooks import run, spool
from echod.log_setup import _escape_values
from echod.memory.document import MAX_PARSED_BYTES, estimate_parsed_bytes, parse
from echod.memory.lineage import MAX_CHANGED_LINES, diff_lines
from echod.memory.model import Unreadable, UnreadableKind
from echod.packs.installed import find_registry_directory
from echod.paths import (
    Paths,
    foreign_reason,
    insecure_directory_warnings,
    make_private_directory,
    paths_from_environment,
)
from echod.projects.discovery import main_worktree_path
from echod.projects.registry import expand_globs
from echod.service.base import ManagedFile, ServiceError
from echod.settings.loader import read_settings_file
from echod.state.database import Database, DatabaseDamagedError
from echod.store.commit.file_steps import append_at
from echod.store.fs import open_dir
from echod.store.git import find_tracked_file


def test_an_archive_with_another_name_is_not_written_through(tmp_path: Path) -> None:
    outside, archive = tmp_path / "outside", tmp_path / "archive"
    archive.mkdir()
    outside.write_text("mine\n")
    outside.chmod(0o640)
    os.link(outside, archive / "removed-2026.md")

    with open_dir(archive, ()) as directory:
        append_at(directory, directory, "removed-2026.md", b"added\n", 5)
        append_at(directory, directory, "removed-2026.md", b"added\n", 5)

    assert outside.read_text() == "mine\n"
    assert (archive / "removed-2026.md").read_text() == "mine\nadded\n"
    assert stat.S_IMODE((archive / "removed-2026.md").stat().st_mode) == 0o640
    assert [path.name for path in archive.iterdir()] == ["removed-2026.md"]


def test_a_leftover_of_a_separation_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("mine\n")
    (tmp_path / "a").mkdir()
    os.link(tmp_path / "outside", tmp_path / "a/x.md")
    (tmp_path / "a/.x.md.echod-copy").write_text("half")

    with open_dir(tmp_path / "a", ()) as directory:
        append_at(directory, directory, "x.md", b"added\n", 5)

    assert (tmp_path / "a/x.md").read_text() == "mine\nadded\n"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["x.md"]


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_pipe_in_the_place_of_the_database_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "echod.db"
    if suffix:
        path.touch()
    os.mkfifo(f"{path}{suffix}")

    for open_database in (Database.open, Database.open_readonly):
        with pytest.raises(DatabaseDamagedError):
            open_database(path)


def test_pipes_in_the_places_of_other_own_files_are_not_waited_for(tmp_path: Path) -> None:
    for name in ("config.toml", "unit", "log", spool.DROPPED_FILE, "summary"):
        os.mkfifo(tmp_path / name)

    with pytest.raises(Exception, match="not a plain file"):
        read_settings_file(tmp_path / "config.toml", must_exist=True)
    with pytest.raises(ServiceError):
        ManagedFile(tmp_path / "unit").read()
    with pytest.raises(OSError):
        open_private_log(tmp_path / "log")
    with pytest.raises(OSError):
        spool.count_dropped(str(tmp_path), spool.FULL)
    assert run._read_file(str(tmp_path / "summary")) == b""


def test_a_runtime_directory_that_others_control_is_not_the_default(tmp_path: Path) -> None:
    environ = {"ECHOD_STATE_DIR": str(tmp_path / "state"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    (tmp_path / "run").mkdir(mode=0o700)
    private = paths_from_environment(environ).runtime

    (tmp_path / "run").chmod(0o777)
    open_to_all = paths_from_environment(environ).runtime
    (tmp_path / "run").chmod(0o700)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run/echod").symlink_to(tmp_path / "elsewhere")
    linked = paths_from_environment(environ).runtime

    assert private == tmp_path / "run/echod"
    assert tmp_path / "run/echod" not in {open_to_all, linked}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_directories_of_another_user_are_refused(tmp_path: Path) -> None:
    for name in ("state", "theirs"):
        (tmp_path / name).mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 65534, 65534)

    with pytest.raises(StateError, match="belongs to another user"):
        Paths(tmp_path / "theirs", tmp_path / "theirs/run", tmp_path / "c.toml").create_directories()
    with pytest.raises(StateError, match="belongs to another user"):
        Paths(tmp_path / "state", tmp_path / "theirs/run", tmp_path / "c.toml").create_directories()
    assert list((tmp_path / "theirs").iterdir()) == []
    assert foreign_reason(tmp_path / "theirs", 0) == f"{tmp_path / 'theirs'} belongs to another user"


def test_directories_that_all_may_write_are_reported(tmp_path: Path) -> None:
    own = Paths(tmp_path / "state", tmp_path / "state/run", tmp_path / "c.toml")
    own.create_directories()
    before = insecure_directory_warnings(own, os.getuid())
    own.state.chmod(0o777)
    (tmp_path / "unit").touch()
    (tmp_path / "unit").chmod(0o666)

    assert before == ()
    assert len(insecure_directory_warnings(own, os.getuid())) == 1
    assert any("chmod o-w" in warning for warning in insecure_file_warnings(tmp_path / "unit", os.getuid()))
    assert check_directories is not None


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_own_directories_are_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    base = tmp_path / "a"
    before = os.umask(umask)
    try:
        if umask != 0o777:  # under which no directory can be entered
            make_private_directory(base / "b/c")
            write_private(base / "d/e/file", b"x")
            spool.count_dropped(str(base / "f/spool"), spool.FULL)
    finally:
        os.umask(before)

    assert [path for path in base.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_nothing_printed_can_act_on_a_terminal() -> None:
    hostile = "x\x1b]0;pwned\x07\x9b2J\r\x08\x7f\u202e\u2066\ud800y\n\tz\r\n"

    text = escape_unsafe(hostile, keep_styles=True)

    assert text == ("x\\u001b]0;pwned\\u0007\\u009b2J\\u000d\\u0008\\u007f\\u202e\\u2066\\ud800y\n\tz\r\n")
    assert json.loads(escape_unsafe('"a\x9b\x7f"', keep_styles=False)) == "a\x9b\x7f"
    assert escape_unsafe("\x1b[31m!\x1b[0m\r\x1b[K", keep_styles=True) == "\x1b[31m!\x1b[0m\r\x1b[K"
    assert "\x1b" not in escape_unsafe("\x1b[31m!\x1b[0m", keep_styles=False)


def test_a_stream_of_the_process_is_made_safe_once() -> None:
    raw = io.BytesIO()
    stream = SafeTextOutput.wrap(io.TextIOWrapper(raw, encoding="utf-8"))

    assert SafeTextOutput.wrap(stream) is stream
    assert stream.write("a\x1b[2Jb") == len("a\x1b[2Jb")
    stream.flush()
    assert raw.getvalue() == b"a\\u001b[2Jb"


def test_the_name_of_a_branch_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / ".git/refs/heads").mkdir(parents=True)
    (tmp_path / ".git/index").write_bytes(b"DIRC\0\0\0\2\0\0\0\1a.md\0")
    heads = []
    for branch in ("secret-one", "secret-two"):
        (tmp_path / ".git/HEAD").write_text(f"ref: refs/heads/{branch}\n")
        (tmp_path / ".git/packed-refs").write_text(f"# pack\n{'a' * 40} refs/heads/{branch}\n")
        tracked = find_tracked_file(tmp_path, tmp_path / "a.md")
        assert tracked is not None
        heads.append(tracked.head)

    assert heads[0] != heads[1]
    assert not any("secret" in head for head in heads)
    assert all(head.endswith("a" * 40) for head in heads)


def test_links_out_of_a_registry_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside/doc-packs").mkdir(parents=True)
    (tmp_path / "outside/doc-packs/registry.json").write_text("{}")
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry/data").symlink_to(tmp_path / "outside")

    assert find_registry_directory(tmp_path / "registry") == tmp_path / "registry"


def test_links_do_not_multiply_the_matches_of_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "p/.rune/echoes").mkdir(parents=True)
    for name in ("one", "two", "three"):
        (tmp_path / name).symlink_to(".")
    (tmp_path / "loop").symlink_to("loop")

    assert expand_globs([f"{tmp_path}/**"]) == (tmp_path / "p",)
    assert expand_globs([f"{tmp_path}/*"]) == (tmp_path / "p",)


@pytest.mark.parametrize("pointer", ["a/" * 30_000, "/" * 60_000, "../" * 20_000])
def test_a_pointer_that_no_system_opens_is_not_resolved(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(f"gitdir: {pointer}")

    assert main_worktree_path(tmp_path) == tmp_path
    assert find_tracked_file(tmp_path, tmp_path / "a.md") is None


@pytest.mark.parametrize("unit", ["## a\n", "##\n", "## Notes \u2014 a (2026-01-01)\n", "- **x**: y\n"])
def test_a_file_that_would_take_too_much_memory_is_refused_before_it_is_read(unit: str) -> None:
    data = (unit * (9_000_000 // len(unit.encode()))).encode()

    document = parse(data)

    assert estimate_parsed_bytes(data) > MAX_PARSED_BYTES
    assert isinstance(document, Unreadable)
    assert document.kind is UnreadableKind.OVER_SIZE
    assert "Split it" in document.reason


def test_equal_lines_are_compared_in_linear_time() -> None:
    old = ["first", *["  x"] * 12_000, "last"]
    new = ["changed", *["  x"] * 12_001, "other"]

    changes = diff_lines(old, new)

    assert 1 <= len(changes) <= MAX_CHANGED_LINES
    assert diff_lines(old, old) == []


def test_more_changes_than_the_limit_are_one() -> None:
    old = [f"a{number}" for number in range(2_000)]
    new = [f"b{number}" if number % 2 else f"a{number}" for number in range(2_000)]

    assert [tuple(change) for change in diff_lines(old, new)] == [(1, 2_000, 1, 2_000)]


def test_the_log_on_a_terminal_escapes_names() -> None:
    event = {"event": "left_alone", "path": "/x\x1b]0;pwned\x07\x9b31m", "tries": 3}

    assert _escape_values(None, "", event) == {
        "event": "left_alone",
        "path": "/x\\x1b]0;pwned\\x07\\x9b31m",
        "tries": 3,
    }
