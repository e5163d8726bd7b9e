from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from echod import log_setup


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in list(root.handlers):
        if handler not in handlers:
            root.removeHandler(handler)
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_our_lines_and_a_librarys_lines_are_one_json_object_each() -> None:
    stream = io.StringIO()
    log_setup.configure("info", stream, {})

    structlog.get_logger("echod.test").info("job_finished", kind="consolidate", seconds=0.5)
    logging.getLogger("watchdog.observers").warning("overflow %d", 3)

    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert first | {"timestamp": ""} == {
        "event": "job_finished", "kind": "consolidate", "seconds": 0.5, "level": "info", "timestamp": "",
    }  # fmt: skip
    assert second["event"] == "overflow 3"


def test_a_traceback_carries_no_local_variables() -> None:
    stream = io.StringIO()
    log_setup.configure("info", stream, {})

    def fail() -> None:
        memory_text = "hunter" + "2-in-a-local"
        raise ValueError(len(memory_text))

    try:
        fail()
    except ValueError:
        structlog.get_logger("echod.test").exception("job_crashed")

    assert "ValueError" in stream.getvalue()
    assert "hunter" not in stream.getvalue()


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    log_setup.configure("warning", stream, {})

    structlog.get_logger("echod.test").info("quiet")

    assert stream.getvalue() == ""


def test_the_journal_gets_a_priority_in_front_of_each_line(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with file.open("w") as stream:
        status = os.fstat(stream.fileno())
        log_setup.configure("info", stream, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})

        structlog.get_logger("echod.test").warning("projects_missing")

    assert file.read_text().startswith("<4>{")


def test_a_log_file_is_private_and_rotates(tmp_path: Path) -> None:
    file = tmp_path / "log" / "echod.log"
    log_setup.configure("info", io.StringIO(), {}, file=file)

    structlog.get_logger("echod.test").info("started")

    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["event"] == "started"


def test_a_log_file_that_cannot_be_written_is_ignored(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text("a file where the directory would be")
    log_setup.configure("info", io.StringIO(), {}, file=tmp_path / "log" / "echod.log")

    structlog.get_logger("echod.test").info("job_finished")

    assert capfd.readouterr() == ("", "")


def test_the_same_problem_is_not_logged_several_times_a_second() -> None:
    now = 100.0
    repeat_filter = log_setup.RepeatFilter(lambda: now)

    def passes(**fields: object) -> dict[str, object] | None:
        try:
            return dict(repeat_filter(None, "warning", {"event": "database_unavailable", **fields}))
        except structlog.DropEvent:
            return None

    assert passes(error="full") == {"event": "database_unavailable", "error": "full"}
    assert passes(error="full") is None
    assert passes(error="locked") is not None
    assert [passes(job=1), passes(job=1)] == [{"event": "database_unavailable", "job": 1}] * 2
    now = 161.0
    assert passes(error="full") == {"event": "database_unavailable", "error": "full", "repeated": 1}
