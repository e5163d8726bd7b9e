"""Auto memory on the disk: where it is, changes that survive a kill, and copies that survive a purge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from echod.auto_memory import changes as changes_module
from echod.auto_memory.changes import LOCK, ChangeRecordError, MemoryChangedError, MemoryChanges, NewFile, lock_reason
from echod.auto_memory.copies import MemoryCopies, copied_directories, refresh_copies
from echod.auto_memory.places import (
    FoundPlaces,
    default_directory,
    find_places,
    is_disabled,
    memory_project,
    read_directory,
)
from echod.store.fs import exchange

NOW = 1_795_000_000.0
OLD = b"- [A](a.md)\n- [B](b.md)\n"
NEW = b"- [B](b.md)\n- [A](a.md)\n"


class KilledError(BaseException):
    """Ends a change at a step, as a kill would."""


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "claude/projects/-p/memory"
    path.mkdir(parents=True)
    (path / "MEMORY.md").write_bytes(OLD)
    os.utime(path / "MEMORY.md", (1_000_000, 1_000_000))
    return path


@pytest.fixture
def changes(tmp_path: Path) -> MemoryChanges:
    return MemoryChanges(tmp_path / "state")


def files_in(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def reorder(changes: MemoryChanges, memory: Path, job: int = 1) -> None:
    new = NewFile(NEW, OLD, (memory / "MEMORY.md").stat().st_mtime_ns)
    changes.apply(memory, {"MEMORY.md": new}, job=job, kind="repair", summary="sorted", now=NOW)


# Places


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    (root / ".git").mkdir(parents=True)
    (root / ".claude").mkdir()
    return root


def found(tmp_path: Path, project: Path) -> FoundPlaces:
    for name in ("managed", "local", "project", "user", "dir"):
        (tmp_path / name).mkdir(exist_ok=True)
    default_directory(tmp_path / "claude", project).mkdir(parents=True, exist_ok=True)
    return find_places(tmp_path / "claude", (), only=project, managed=tmp_path / "managed.json")


def write_setting(file: Path, value: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"autoMemoryDirectory": value}))


def test_the_first_scope_with_a_directory_wins_and_the_others_are_reported(tmp_path: Path, project: Path) -> None:
    files = {
        "user": tmp_path / "claude/settings.json",
        "project": project / ".claude/settings.json",
        "local": project / ".claude/settings.local.json",
        "managed": tmp_path / "managed.json",
    }
    assert found(tmp_path, project).places[0].path == default_directory(tmp_path / "claude", project)

    for number, (scope, file) in enumerate(files.items()):
        write_setting(file, str(tmp_path / scope))
        places = found(tmp_path, project)

        assert places.places[0].path == tmp_path / scope
        assert scope in places.places[0].source
        overridden = [finding for _, finding in places.findings if finding.code == "auto-directory-overridden"]
        assert len(overridden) == number
        redirected = [finding for _, finding in places.findings if finding.code == "auto-directory-project"]
        assert len(redirected) == (scope == "project")


@pytest.mark.parametrize(("value", "count"), [("relative/dir", 1), ("~/dir", 0)])
def test_a_directory_that_the_host_ignores_is_reported(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, value: str, count: int
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_setting(tmp_path / "claude/settings.json", value)

    places = found(tmp_path, project)

    assert len([f for _, f in places.findings if f.code == "auto-directory-ignored" and f.is_problem]) == count
    assert (places.places[0].path == tmp_path / "dir") == (count == 0)


@pytest.mark.parametrize(
    ("front", "codes"),
    [
        ("memory: project\ntools: Read, Grep", ["auto-agent-unwritable"]),
        ("memory: user\ntools: [Read, 'Bash(ls:*)']", ["auto-agent-unwritable"]),
        ("memory: local\ndisallowedTools: Write, Edit", ["auto-agent-unwritable"]),
        ("memory: everywhere", ["auto-agent-scope"]),
        ("memory: project\ntools: Read, Write", []),
        ("memory: project\ntools: '*'", []),
        ("memory: local\ndisallowedTools: Write", []),
        ("memory: project", []),
        ("tools: Read", []),
    ],
)
def test_a_memory_that_its_agent_can_never_write_is_found(
    tmp_path: Path, project: Path, front: str, codes: list[str]
) -> None:
    (project / ".claude/agents").mkdir()
    (project / ".claude/agents/a.md").write_text(f"---\nname: a\ndescription: d\n{front}\n---\nYou review.\n")

    findings = found(tmp_path, project).findings

    assert [(finding.code, finding.line) for _, finding in findings] == [(code, 4) for code in codes]


def test_all_directories_are_found_without_a_project(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "claude"
    wanted = [
        home / "projects/-x/memory",
        home / "agent-memory/reviewer",
        project / ".claude/agent-memory/tester",
        project / ".claude/agent-memory-local/tester",
    ]
    for path in wanted:
        path.mkdir(parents=True)
    (home / "projects/-y").mkdir()

    places = find_places(home, [project], only=None, managed=tmp_path / "managed.json").places

    assert {place.path for place in places} == set(wanted)


def test_a_worktree_shares_the_memory_of_its_project(tmp_path: Path) -> None:
    main = tmp_path / "main"
    git = ["git", "-C", str(main), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    main.mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "copy")], check=True)
    (main / "below").mkdir()

    assert memory_project(tmp_path / "copy") == memory_project(main / "below") == main.resolve()


def test_links_and_long_files_are_unreadable_and_not_left_out(memory: Path) -> None:
    (memory / "link.md").symlink_to("MEMORY.md")
    (memory / "long.md").write_bytes(b"x" * ((1 << 20) + 1))
    (memory / ".hidden.md").write_text("x")
    (memory / "topic").mkdir()
    (memory / "topic/deep.md").write_text("x")
    (memory / "team").mkdir()
    (memory / "team/MEMORY.md").write_text("x")

    directory = read_directory(memory)

    assert [name for name, _ in directory.unreadable] == ["link.md", "long.md"]
    assert [note.name for note in directory.notes] == ["topic/deep.md"]


def test_a_named_path_is_missing_only_if_its_directory_exists(memory: Path, tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text("x")
    (memory / "a.md").write_text(f"See `{tmp_path}/here.py:3`, `{tmp_path}/gone.py:3-9`, `{tmp_path}/other/away.py`.\n")

    assert read_directory(memory).missing_paths == {f"{tmp_path}/gone.py"}


def test_what_switches_auto_memory_off_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"autoMemoryEnabled": false}')

    assert is_disabled(tmp_path / "none", {}) is None
    assert "autoMemoryEnabled" in str(is_disabled(tmp_path, {}))
    assert "CLAUDE_CODE_DISABLE" in str(is_disabled(tmp_path, {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}))


# The host's lock


@pytest.mark.parametrize(
    ("content", "age", "is_held"),
    [(str(os.getpid()), 10, True), (str(os.getpid()), 3_700, False), ("", 10, True), ("999999999", 10, False)],
    ids=["held", "stale", "unreadable", "dead"],
)
def test_the_lock_of_the_host_is_respected_and_never_touched(
    memory: Path, changes: MemoryChanges, content: str, age: float, is_held: bool
) -> None:
    lock = memory / LOCK
    lock.write_text(content)
    os.utime(lock, (NOW - age, NOW - age))

    assert (lock_reason(memory, NOW) is not None) == is_held
    if is_held:
        with pytest.raises(MemoryChangedError, match="lock"):
            reorder(changes, memory)
        assert (memory / "MEMORY.md").read_bytes() == OLD
    else:
        reorder(changes, memory)
    assert (lock.read_text(), lock.stat().st_mtime) == (content, NOW - age)


# Changes


def test_a_new_order_keeps_the_time_and_mode_of_the_file_and_can_be_undone(
    memory: Path, changes: MemoryChanges
) -> None:
    (memory / "MEMORY.md").chmod(0o640)
    reorder(changes, memory)
    status = (memory / "MEMORY.md").stat()
    assert (files_in(memory), status.st_mtime, status.st_mode & 0o777) == ({"MEMORY.md": NEW}, 1_000_000, 0o640)

    changes.undo(changes.records()[0], job=2, now=NOW)

    assert (files_in(memory), (memory / "MEMORY.md").stat().st_mtime) == ({"MEMORY.md": OLD}, 1_000_000)
    assert [record.undone_by for record in changes.records()] == [2, None]
    with pytest.raises(ChangeRecordError, match="by job 2"):
        changes.undo(changes.records()[0], job=3, now=NOW)


def test_an_undo_of_a_file_that_changed_since_is_refused(memory: Path, changes: MemoryChanges) -> None:
    reorder(changes, memory)
    (memory / "MEMORY.md").write_bytes(b"agent")

    with pytest.raises(MemoryChangedError):
        changes.undo(changes.records()[0], job=2, now=NOW)

    assert files_in(memory) == {"MEMORY.md": b"agent"}
    assert changes.records()[0].undone_by is None


STEPS = ("intent", "MEMORY.md", "new.md", "done")


@pytest.mark.parametrize("killed_at", STEPS)
def test_a_killed_change_is_completed_or_never_began(memory: Path, tmp_path: Path, killed_at: str) -> None:
    def trace(step: str) -> None:
        if step == killed_at:
            raise KilledError

    plan = {"MEMORY.md": NewFile(NEW, OLD), "new.md": NewFile(b"new", None)}
    with pytest.raises(KilledError):
        MemoryChanges(tmp_path / "state", trace).apply(memory, plan, job=1, kind="repair", summary="s", now=NOW)
    after = MemoryChanges(tmp_path / "state")
    after.recover()
    began = killed_at != "intent"

    assert files_in(memory) == ({"MEMORY.md": NEW, "new.md": b"new"} if began else {"MEMORY.md": OLD})
    assert len(after.records()) == began
    if began:
        after.undo(after.records()[0], job=2, now=NOW)
        assert files_in(memory) == {"MEMORY.md": OLD}


def test_a_kill_between_exchange_and_cleaning_leaves_no_file_behind(
    memory: Path, changes: MemoryChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(changes_module, "_check_displaced", die)
        patched.setattr(changes_module, "_remove_leftover", lambda *_: None)
        with pytest.raises(KilledError):
            reorder(changes, memory)
    assert len(files_in(memory)) == 2

    changes.recover()

    assert files_in(memory) == {"MEMORY.md": NEW}


def test_a_write_of_the_agent_in_the_last_moment_is_not_lost(
    memory: Path, changes: MemoryChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent writes after the last look at the file, just before the exchange."""
    genuine = exchange
    calls: list[int] = []

    def late(*arguments: object) -> None:
        if not calls:
            calls.append(1)
            (memory / "MEMORY.md").write_bytes(b"agent")
        genuine(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(changes_module, "exchange", late)
    with pytest.raises(MemoryChangedError, match="in this moment"):
        reorder(changes, memory)

    assert files_in(memory) == {"MEMORY.md": b"agent"}
    assert changes.records() == ()
    assert changes.recover() == 0


def test_a_file_that_another_program_is_writing_is_left_alone(memory: Path, changes: MemoryChanges) -> None:
    script = "import sys; f = open(sys.argv[1], 'ab'); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(memory / "MEMORY.md")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        try:
            reorder(changes, memory)
        except MemoryChangedError as error:
            assert "being written" in str(error)  # noqa: PT017  a file system without leases cannot tell
            assert (memory / "MEMORY.md").read_bytes() == OLD
        finally:
            assert writer.stdin is not None
            writer.stdin.close()


# Copies


@pytest.fixture
def copies(tmp_path: Path, memory: Path) -> MemoryCopies:
    for number in range(4):
        (memory / f"fact-{number}.md").write_text(f"fact {number}")
    return MemoryCopies(tmp_path / "copies", memory)


def test_a_copy_is_made_only_when_something_changed(memory: Path, copies: MemoryCopies) -> None:
    assert [copies.refresh(NOW), copies.refresh(NOW + 1)] == [True, False]
    (memory / "fact-1.md").write_text("changed fact")

    assert copies.refresh(NOW + 2)
    first, second = copies.copies()
    assert (copies.read(first.files["fact-1.md"]), copies.read(second.files["fact-1.md"])) == (
        b"fact 1",
        b"changed fact",
    )


@pytest.mark.parametrize("purge", [shutil.rmtree, lambda path: [file.unlink() for file in path.iterdir()]])
def test_a_purge_is_never_copied(memory: Path, copies: MemoryCopies, tmp_path: Path, purge: object) -> None:
    copies.refresh(NOW)
    assert callable(purge)
    purge(memory)

    assert refresh_copies(tmp_path / "copies", tmp_path / "claude", (), NOW + 1) == 0
    copy = copies.newest_with_losses()
    loss = copies.loss(NOW + 1)

    assert copy is not None
    assert (len(copy.files), copies.read(copy.files["fact-2.md"])) == (5, b"fact 2")
    assert loss is not None
    assert (loss.code, loss.is_problem) == ("auto-lost", True)
    assert copied_directories(tmp_path / "copies") == (memory,)


def test_one_deleted_file_is_no_loss(memory: Path, copies: MemoryCopies) -> None:
    copies.refresh(NOW)
    (memory / "fact-1.md").unlink()

    assert copies.loss(NOW) is None


def test_old_copies_are_deleted_except_the_last_with_a_file_that_is_gone(
    memory: Path, copies: MemoryCopies, tmp_path: Path
) -> None:
    copies.refresh(NOW)
    (memory / "fact-0.md").unlink()
    for number in range(30):
        (memory / "fact-1.md").write_text(f"fact 1, version {number}")
        copies.refresh(NOW + number)

    kept = copies.copies()

    assert [copy.number for copy in kept] == [1, *range(12, 32)]
    assert copies.read(kept[0].files["fact-0.md"]) == b"fact 0"
    blobs = next((tmp_path / "copies").glob("*/blobs"))
    assert len(list(blobs.iterdir())) == 5 + 20


def test_a_directory_that_cannot_be_copied_is_left_alone(memory: Path, copies: MemoryCopies, tmp_path: Path) -> None:
    other = tmp_path / "claude/projects/-q/memory"
    other.mkdir(parents=True)
    (other / "MEMORY.md").write_text("x")
    copies.refresh(NOW)
    next((tmp_path / "copies").glob("*/0*.json")).write_text("{")

    assert refresh_copies(tmp_path / "copies", tmp_path / "claude", (), NOW) == 1
    assert MemoryCopies(tmp_path / "copies", other).copies()[0].files.keys() == {"MEMORY.md"}
