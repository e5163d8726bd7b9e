"""The collector on a disk that is not as tidy as a table."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from echod.workflows import GateState, MarkerKind, ProcessState, ProcessStatus, SystemProcessTable, files
from echod.workflows.markers import workflow_files
from tests.workflows.scene import LIVE_PID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.workflows.scene import Scene


def link(scene: Scene, name: str, target: Path) -> None:
    path = scene.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def test_a_linked_state_file_does_not_count(scene: Scene) -> None:
    link(scene, "tmp/.rune-work-1.json", scene.json("real.json", status="active", owner_pid=LIVE_PID))

    assert scene.verdict().state is GateState.IDLE


def test_a_linked_loop_file_does_not_count(scene: Scene) -> None:
    link(scene, ".rune/arc-phase-loop.local.md", scene.file("real.md", "---\nactive: true\n---\n"))

    assert scene.verdict().state is GateState.IDLE


@pytest.mark.parametrize("place", [".rune/arc", ".rune/arc/arc-1", "tmp/arc"])
def test_nothing_is_found_behind_a_linked_directory(scene: Scene, place: str) -> None:
    elsewhere = scene.project / "elsewhere"
    below = Path("arc-1") if Path(place).name == "arc" else Path()
    scene.json(f"elsewhere/{below}/checkpoint.json", phases={"work": {"status": "in_progress"}}, owner_pid=LIVE_PID)
    link(scene, place, elsewhere)

    assert scene.verdict().state is GateState.IDLE


@pytest.mark.parametrize("place", ["tmp/.rune-locks", "tmp/.rune-locks/strive"])
def test_a_linked_lock_does_not_count(scene: Scene, place: str) -> None:
    scene.json("elsewhere/meta.json", pid=LIVE_PID)
    scene.json("elsewhere/strive/meta.json", pid=LIVE_PID)
    link(scene, place, scene.project / "elsewhere")

    assert scene.verdict().state is not GateState.ACTIVE


def test_a_linked_end_of_a_team_ends_nothing(scene: Scene) -> None:
    scene.file("tmp/.rune-signals/rune-work-1/.expected", "2")
    link(scene, "tmp/.rune-signals/rune-work-1/.all-done", Path("/dev/null"))

    assert scene.verdict().state is GateState.ACTIVE


def test_a_linked_tmp_is_a_warning_since_nothing_behind_it_is_seen(scene: Scene) -> None:
    scene.json("elsewhere/.rune-work-1.json", status="active", owner_pid=LIVE_PID)
    link(scene, "tmp", scene.project / "elsewhere")

    verdict = scene.verdict()

    assert verdict.state is GateState.IDLE
    assert [(r.kind, r.marker, r.blocking) for r in verdict.reasons] == [(MarkerKind.INACCESSIBLE, "tmp", False)]


@pytest.mark.parametrize(
    "name",
    [
        "tmp/.rune-work-1.json",
        ".rune/arc-phase-loop.local.md",
        ".rune/arc/arc-1/checkpoint.json",
        "tmp/.rune-signals/rune-work-1/.expected",
        "tmp/arc/arc-1/heartbeat.json",
        ".git",
    ],
)
def test_a_pipe_with_a_marker_s_name_neither_blocks_nor_counts(scene: Scene, name: str) -> None:
    scene.memory(age=24)
    path = scene.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)

    assert scene.verdict().state is not GateState.ACTIVE


def test_dangling_links_and_odd_things_in_every_place_are_passed_over(scene: Scene) -> None:
    for place in ("tmp", ".rune", ".claude", "tmp/.rune-signals", "tmp/.rune-locks", ".rune/arc", "tmp/arc"):
        scene.file(f"{place}/readme.txt")
        link(scene, f"{place}/arc-5", Path("nowhere"))
        link(scene, f"{place}/arc-batch-loop.local.md", Path("nowhere"))
    scene.file("tmp/.rune-locks/plain", "not a directory")
    scene.file("tmp/.rune-signals/plain", "not a directory")
    scene.set_age(scene.project / "tmp/.rune-locks", 1)

    assert scene.verdict().state is GateState.IDLE


def test_a_file_that_vanishes_between_listing_and_reading_is_absent(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = scene.state("work-1", status="active", owner_pid=LIVE_PID)
    stays = scene.state("work-2", status="active", owner_pid=LIVE_PID)
    read = files.read_file

    def vanish(path: Path, limit: int) -> files.MarkerFile | None:
        gone.unlink(missing_ok=True)
        return read(path, limit)

    monkeypatch.setattr(files, "read_file", vanish)

    assert [r.marker for r in scene.verdict().reasons] == [f"tmp/{stays.name}"]


def test_a_file_that_cannot_be_read_is_unknown_and_not_absent(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scene.state(status="completed", age=1)
    open_file = os.open

    def refuse(name: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if Path(name) == path:
            raise PermissionError(13, "Permission denied")
        return open_file(name, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)

    assert scene.verdict().state is GateState.ACTIVE
    assert scene.verdict(later=2).state is GateState.IDLE


@pytest.mark.parametrize("place", ["tmp", "tmp/.rune-locks", "tmp/.rune-signals", ".rune/arc"])
def test_a_directory_that_cannot_be_listed_is_unknown_for_a_bounded_time(
    scene: Scene, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scene.project / place).mkdir(parents=True)
    scene.set_age(scene.project / place, 1)
    scandir = os.scandir

    def refuse(directory: Path) -> Iterator[os.DirEntry[str]]:
        if directory == scene.project / place:
            raise PermissionError(13, "Permission denied")
        return scandir(directory)

    monkeypatch.setattr("echod.workflows.files.os.scandir", refuse)

    now, later = scene.verdict(), scene.verdict(later=2)

    assert (now.state, now.reasons[0].kind, now.reasons[0].marker) == (GateState.ACTIVE, MarkerKind.INACCESSIBLE, place)
    assert (later.state, [r.blocking for r in later.reasons]) == (GateState.IDLE, [False])


def deny_lstat(monkeypatch: pytest.MonkeyPatch, *refused: Path) -> None:
    lstat = os.lstat

    def refuse(path: str | Path) -> os.stat_result:
        if Path(path) in refused:
            raise OSError(5, "Input/output error")
        return lstat(path)

    monkeypatch.setattr(os, "lstat", refuse)


def test_a_file_with_an_unreadable_time_is_as_old_as_its_directory(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scene.state(status="completed", age=3)
    scene.set_age(path.parent, 1)
    deny_lstat(monkeypatch, path)

    assert scene.verdict().state is GateState.ACTIVE
    assert scene.verdict(later=2).state is GateState.IDLE


def test_an_unknown_time_counts_as_fresh(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.state(status="active", age=3)
    deny_lstat(monkeypatch, scene.project / "tmp", scene.project)

    verdict = scene.verdict(later=2)

    assert verdict.state is GateState.ACTIVE
    assert verdict.until is None
    assert "believed until its time can be read" in verdict.reasons[0].text


def test_a_disk_that_fails_while_a_file_is_read_makes_it_unknown(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.state(status="completed", age=1)

    class FailingFile(io.BufferedReader):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    def open_failing(path: Path, *, follow_symlinks: bool) -> FailingFile:
        return FailingFile(io.FileIO(path))

    monkeypatch.setattr(files, "open_regular", open_failing)

    assert scene.verdict().state is GateState.ACTIVE


def test_a_file_larger_than_a_buffer_is_read_to_its_end(scene: Scene) -> None:
    scene.state(status="active", notes="x" * 16 * io.DEFAULT_BUFFER_SIZE, owner_pid=LIVE_PID)

    assert scene.verdict().reasons[0].pid == LIVE_PID


def test_a_process_born_moments_after_its_marker_is_still_its_owner(scene: Scene) -> None:
    scene.processes.table[LIVE_PID] = ProcessStatus(ProcessState.ALIVE, scene.now - 3600 + 30)
    scene.state(status="active", owner_pid=LIVE_PID, age=1)

    assert scene.verdict().state is GateState.ACTIVE


def test_permissions_of_the_system_give_the_same_answer(scene: Scene, ordinary_user: None) -> None:
    path = scene.state(status="completed", age=1)
    path.chmod(0)

    assert scene.verdict().state is GateState.ACTIVE


def test_a_deleted_project_is_idle(scene: Scene) -> None:
    scene.project.rmdir()

    assert scene.verdict().state is GateState.IDLE


def test_a_project_is_the_same_through_a_link(scene: Scene) -> None:
    scene.state(status="active", owner_pid=LIVE_PID)
    alias = scene.project.parent / "alias"
    alias.symlink_to(scene.project)
    scene.project = alias

    assert [r.marker for r in scene.verdict().reasons] == ["tmp/.rune-review-abc.json"]


def test_of_countless_state_files_only_the_newest_are_opened(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        scene.state(f"work-{number}", status="completed", age=100 + number)
    scene.state("review-last", status="active", owner_pid=LIVE_PID, age=1)
    opened: list[Path] = []
    read = files.read_file

    def count(path: Path, limit: int) -> files.MarkerFile | None:
        opened.append(path)
        return read(path, limit)

    monkeypatch.setattr(files, "read_file", count)

    verdict = scene.verdict()

    assert [r.marker for r in verdict.reasons] == ["tmp/.rune-review-last.json"]
    assert len([path for path in opened if path.parent.name == "tmp"]) == workflow_files.MAX_STATE_FILES


def test_a_busy_tmp_costs_no_look_at_any_of_its_files(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = scene.file("tmp/log.txt").parent
    for number in range(1_000):
        (directory / f"log-{number}.txt").touch()
    looks: list[Path] = []
    look = files.lstat_or_none

    def count(path: Path) -> os.stat_result | None:
        looks.append(path)
        return look(path)

    monkeypatch.setattr(files, "lstat_or_none", count)

    scene.observe()

    assert len(looks) < 100


def test_looking_writes_nothing(scene: Scene) -> None:
    scene.memory()
    scene.state(status="active", owner_pid=LIVE_PID)
    scene.file(".rune/arc-phase-loop.local.md", "---\nactive: true\n---\n")
    before = {path: path.lstat().st_mtime_ns for path in scene.project.rglob("*")}

    scene.observe()

    assert {path: path.lstat().st_mtime_ns for path in scene.project.rglob("*")} == before


def test_in_a_worktree_the_main_repository_s_locks_count(scene: Scene) -> None:
    main = scene.project.parent / "main"
    (main / "tmp/.rune-locks/strive").mkdir(parents=True)
    (main / "tmp/.rune-locks/strive/meta.json").write_text(f'{{"pid": {LIVE_PID}}}')
    scene.file(".git", f"gitdir: {main}/.git/worktrees/w\n")
    scene.file(".rune/.rune-worktree-source", f"{main}\n")

    verdict = scene.verdict()

    assert verdict.state is GateState.ACTIVE
    assert verdict.reasons[0].marker == str(main / "tmp/.rune-locks/strive")


@pytest.mark.parametrize("source", ["../main", "/x/../main", "/main;rm", ""])
def test_a_worktree_s_source_that_looks_odd_is_not_followed(scene: Scene, source: str) -> None:
    scene.file(".git", "gitdir: x\n")
    scene.file(".rune/.rune-worktree-source", source)

    assert scene.verdict().state is GateState.IDLE


def test_hostile_text_in_a_marker_is_shown_harmlessly(scene: Scene) -> None:
    scene.state(status="\x1b[31m" + "x" * 500 + "\ud800", owner_pid=LIVE_PID)

    text = scene.verdict().reasons[0].text

    assert text.isprintable()
    assert len(text) < 300


def test_our_own_process_lives_and_started_before_now() -> None:
    process = SystemProcessTable().lookup(os.getpid())

    assert process.state is ProcessState.ALIVE
    assert process.started is not None
    assert process.started <= time.time()


def test_a_process_that_ended_is_dead_before_and_after_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    zombie = SystemProcessTable().lookup(child.pid)
    child.wait()
    reaped = SystemProcessTable().lookup(child.pid)

    assert (zombie.state, reaped.state) == (ProcessState.DEAD, ProcessState.DEAD)


def test_a_process_that_we_may_not_signal_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("echod.workflows.collect.os.kill", refuse)

    assert SystemProcessTable().lookup(os.getpid()).state is ProcessState.ALIVE


@pytest.mark.parametrize(
    ("error", "life"),
    [(psutil.NoSuchProcess, ProcessState.DEAD), (psutil.AccessDenied, ProcessState.ALIVE)],
    ids=["it just ended", "the system does not tell"],
)
def test_a_process_that_cannot_be_looked_up(
    error: type[psutil.Error], life: ProcessState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(pid: int) -> psutil.Process:
        raise error(pid)

    monkeypatch.setattr(psutil, "Process", fail)

    assert SystemProcessTable().lookup(os.getpid()) == ProcessStatus(life, None)


def test_a_number_no_system_has_is_unknown_or_dead() -> None:
    assert SystemProcessTable().lookup(1 << 70).state is ProcessState.UNKNOWN


def test_an_idle_project_never_loads_psutil(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from echod.workflows import *\n"
        "o = collect_observations(Path(sys.argv[1]), (), claude_home=None, processes=SystemProcessTable(), declared=(),"
        " changed_since=0, own_mtime={}.get, last_ended=None)\n"
        "assert gate(o, 0, GateLimits()).state == 'idle'\n"
        "print({'psutil', 'yaml', 'structlog', 'asyncio'} & set(sys.modules))"
    )

    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)

    assert result.stdout == "set()\n"
