"""A hook spools its event, prints nothing, and exits with 0 even after an error."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hooks.events import minimal_environ, run_hook, session_start_event, start_hook_process, teammate_event

SILENT = (0, b"", b"")


def spooled_files(state: Path) -> list[Path]:
    return sorted(path for path in (state / "spool").iterdir() if not path.name.startswith("."))


def dropped_letters(state: Path) -> str:
    file = state / "spool" / ".dropped"
    return file.read_text() if file.exists() else ""


def test_an_event_is_spooled_as_it_arrived(tmp_path: Path) -> None:
    event = json.dumps(teammate_event(tmp_path, subject="Prüfe die \u201eSitzung\u201c \U0001f984")).encode()

    assert run_hook("task-completed", event, minimal_environ(tmp_path / "state")) == SILENT

    (file,) = spooled_files(tmp_path / "state")
    assert file.read_bytes() == event
    assert file.name.endswith(".task-completed.json")


def test_files_of_a_hook_are_private(tmp_path: Path) -> None:
    run_hook("stop", {"a": 1}, minimal_environ(tmp_path / "state"))

    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "state", tmp_path / "state/spool")] == [0o700, 0o700]
    assert spooled_files(tmp_path / "state")[0].stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("event", ["task-completed", "session-start", "session-end", "pre-compact", "stop"])
def test_every_event_is_spooled_in_silence(tmp_path: Path, event: str) -> None:
    assert run_hook(event, session_start_event(tmp_path), minimal_environ(tmp_path / "state"), tmp_path) == SILENT
    assert len(spooled_files(tmp_path / "state")) == 1


def test_garbage_is_spooled_like_anything_else(tmp_path: Path) -> None:
    assert run_hook("stop", b"\xff\x00 no JSON {", minimal_environ(tmp_path / "state")) == SILENT
    assert len(spooled_files(tmp_path / "state")) == 1


def test_two_megabytes_are_read_dropped_and_counted(tmp_path: Path) -> None:
    event = json.dumps(teammate_event(tmp_path, task_description="x" * 2_000_000)).encode()

    assert run_hook("task-completed", event, minimal_environ(tmp_path / "state")) == SILENT
    assert spooled_files(tmp_path / "state") == []
    assert dropped_letters(tmp_path / "state") == "l"


def test_an_event_of_just_one_mebibyte_is_spooled(tmp_path: Path) -> None:
    event = b"{}".ljust(1024 * 1024)

    assert run_hook("stop", event, minimal_environ(tmp_path / "state")) == SILENT
    assert spooled_files(tmp_path / "state")[0].stat().st_size == 1024 * 1024


@pytest.mark.parametrize("event", [b"", b" \n"])
def test_an_empty_event_is_counted_as_empty(tmp_path: Path, event: bytes) -> None:
    assert run_hook("stop", event, minimal_environ(tmp_path / "state")) == SILENT
    assert dropped_letters(tmp_path / "state") == "e"


@pytest.mark.parametrize("arguments", [["hook"], ["hook", "unheard-of"], ["hook", "--odd"]])
def test_an_unknown_event_is_counted(tmp_path: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "echod", *arguments],
        input=b"{}",
        env=minimal_environ(tmp_path / "state"),
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == SILENT
    assert dropped_letters(tmp_path / "state") == "u"


def closed_stdin() -> None:
    os.close(0)


def full_disk() -> None:
    # A write then fails with an error; that it would also send a signal is ignored by Python.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def everything_closed() -> None:
    os.closerange(0, 3)


@pytest.mark.parametrize("trouble", [closed_stdin, full_disk, everything_closed], ids=lambda f: f.__name__)
def test_an_error_does_not_reach_the_agent(tmp_path: Path, trouble: Callable[[], None]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "echod", "hook", "task-completed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=minimal_environ(tmp_path / "state"),
        preexec_fn=trouble,  # noqa: PLW1509
    )
    out, err = process.communicate(b"{}", timeout=60)

    assert (process.returncode, out, err) == SILENT
    assert spooled_files(tmp_path / "state") == []


@pytest.mark.parametrize("state", ["relative", "~nobody-of-this-name/state", "/dev/null/state", "/proc/1/nothing"])
def test_an_impossible_state_directory_is_no_reason_to_fail(tmp_path: Path, state: str) -> None:
    assert run_hook("stop", {}, minimal_environ(Path(state)), tmp_path) == SILENT
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    environ = minimal_environ(tmp_path)
    del environ["ECHOD_STATE_DIR"]

    assert run_hook("stop", {}, {**environ, "HOME": "/dev/null"}) == SILENT


def test_wrong_settings_are_not_even_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("nonsense = [")
    environ = minimal_environ(
        tmp_path / "state", ECHOD_CONFIG=str(tmp_path / "config.toml"), ECHOD_QUIET_SECONDS="never"
    )

    assert run_hook("stop", {}, environ) == SILENT
    assert len(spooled_files(tmp_path / "state")) == 1


def test_an_agent_that_never_closes_the_pipe_does_not_block_its_hook(tmp_path: Path) -> None:
    process = start_hook_process("stop", minimal_environ(tmp_path / "state"))
    assert process.stdin is not None
    process.stdin.write(b"{}")
    process.stdin.flush()

    assert process.wait(30) == 0
    process.communicate()
    assert [path.read_bytes() for path in spooled_files(tmp_path / "state")] == [b"{}"]
