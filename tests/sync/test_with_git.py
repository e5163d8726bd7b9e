"""The registered merge driver under a real git, and what happens where it is missing."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from tests.memory.test_branches import clean, contents, expected_entries, histories
from tests.sync.conftest import ECHO, Machine, entry, file_of

pytestmark = pytest.mark.slow

A, B, C, D = entry("alpha"), entry("beta", day=2), entry("gamma", day=3), entry("delta", day=4)
BROKEN = {
    "removed": None,
    "moved environment": "#!/nowhere/bin/python3\n",
    "cannot be loaded": f"#!{sys.executable}\nimport a_module_that_is_gone\n",
    "older version": "#!/bin/sh\necho 'No such command' >&2\nexit 2\n",
    "killed": "#!/bin/sh\nkill -9 $$\n",
}


@pytest.fixture
def ready(machine: Machine, repository: Path) -> Path:
    """Return a set-up repository in which the branch `side` added gamma."""
    machine.run("sync", "setup", repository)
    machine.git("add", "-A", cwd=repository)
    machine.git("commit", "-qm", "attributes", cwd=repository)
    commit(machine, repository, file_of(A, B, C), branch="side")
    machine.git("checkout", "-q", "main", cwd=repository)
    return repository


def commit(machine: Machine, repository: Path, text: str, *, branch: str = "") -> None:
    if branch:
        machine.git("checkout", "-qb", branch, cwd=repository)
    (repository / ECHO).write_text(text)
    machine.git("commit", "-qam", "change", cwd=repository)


def memory(repository: Path) -> str:
    return (repository / ECHO).read_text()


@pytest.mark.parametrize("command", ["merge side", "rebase side", "cherry-pick side"])
def test_entries_of_both_sides_are_kept_by(command: str, machine: Machine, ready: Path) -> None:
    commit(machine, ready, file_of(A, B, D))
    machine.git(*command.split(), *(["-m", "m"] if command.startswith("merge") else []), cwd=ready)
    assert memory(ready) == file_of(A, B, C, D)
    assert machine.git("status", "--porcelain", cwd=ready) == ""


def test_a_stash_is_applied_by_entry(machine: Machine, ready: Path) -> None:
    (ready / ECHO).write_text(file_of(A, B, D))
    machine.git("stash", cwd=ready)
    machine.git("merge", "-q", "side", cwd=ready)
    machine.git("stash", "pop", cwd=ready)
    assert memory(ready) == file_of(A, B, C, D)


def test_a_file_that_both_created_has_the_entries_of_both(machine: Machine, ready: Path) -> None:
    other = ready / ".rune/echoes/planner/MEMORY.md"
    for branch, text in (("one", file_of(A, C)), ("two", file_of(A, B))):
        machine.git("checkout", "-qb", branch, "main", cwd=ready)
        other.parent.mkdir(exist_ok=True)
        other.write_text(text)
        machine.git("add", "-A", cwd=ready)
        machine.git("commit", "-qm", branch, cwd=ready)
    machine.git("merge", "-qm", "m", "one", cwd=ready)
    assert other.read_text() == file_of(A, B, C)


def test_only_the_rewritten_entry_is_in_conflict(machine: Machine, ready: Path) -> None:
    commit(machine, ready, file_of(A, entry("beta", "Now.", day=2)))
    machine.git("checkout", "-q", "side", cwd=ready)
    commit(machine, ready, file_of(A, entry("beta", "Later.", day=2), C))
    machine.git("merge", "main", cwd=ready, fails=True)
    text = memory(ready)
    assert text.count("<<<<<<<") == text.count(">>>>>>>") == 1
    assert text.index("<<<<<<<") > text.index("alpha")
    assert text.index(">>>>>>>") < text.index("gamma")
    assert machine.git("status", "--porcelain", cwd=ready).startswith("UU ")


@pytest.mark.parametrize("size", [3, 12])
def test_markers_have_the_length_that_the_attributes_ask_for(size: int, machine: Machine, ready: Path) -> None:
    (ready / ".git/info/attributes").write_text(f"*.md conflict-marker-size={size}\n")
    commit(machine, ready, file_of(A, entry("beta", "Now.", day=2)))
    machine.git("checkout", "-q", "side", cwd=ready)
    commit(machine, ready, file_of(A, entry("beta", "Later.", day=2), C))
    machine.git("merge", "main", cwd=ready, fails=True)
    lines = [line for line in memory(ready).splitlines() if line.startswith(("<<<", "===", ">>>"))]
    assert lines == ["<" * size + " ours", "=" * size, ">" * size + " theirs"]


def test_a_criss_cross_history_leaves_no_markers_behind(machine: Machine, ready: Path) -> None:
    machine.git("checkout", "-qb", "one", cwd=ready)
    commit(machine, ready, file_of(A, entry("beta", "One.", day=2)))
    commit(machine, ready, file_of(A, entry("beta", "Two.", day=2)), branch="two-from-one")
    machine.git("checkout", "-qb", "two", "main", cwd=ready)
    commit(machine, ready, file_of(A, entry("beta", "Three.", day=2)))
    solved = file_of(A, entry("beta", "Solved.", day=2))
    for branch, other in (("one", "two"), ("two", "one~0")):
        tip = machine.git("rev-parse", "two" if branch == "one" else "one~1", cwd=ready).strip()
        machine.git("checkout", "-q", branch, cwd=ready)
        machine.git("merge", "-m", other, tip, cwd=ready, fails=True)
        (ready / ECHO).write_text(solved)
        machine.git("add", "-A", cwd=ready)
        machine.git("commit", "-qm", "solved", cwd=ready)
    machine.git("checkout", "-q", "one", cwd=ready)
    commit(machine, ready, file_of(A, entry("beta", "Solved.", day=2), C))
    machine.git("merge", "-m", "cross", "two", cwd=ready)
    assert memory(ready) == file_of(A, entry("beta", "Solved.", day=2), C)


@pytest.mark.parametrize("fault", sorted(BROKEN))
def test_without_a_working_echod_git_shows_both_sides(fault: str, machine: Machine, ready: Path) -> None:
    script = BROKEN[fault]
    program = machine.install_echod(script)
    if script is None:
        program.unlink()
    stable = machine.git("config", "merge.echod.driver", cwd=ready).replace(sys.executable, "/nowhere/python")
    stable = stable.replace(str(Path(sys.executable).parent / "echod"), "/nowhere/echod").strip()
    machine.git("config", "merge.echod.driver", stable, cwd=ready)
    commit(machine, ready, file_of(A, B, D))
    machine.git("merge", "side", cwd=ready, fails=True)
    text = memory(ready)
    assert "gamma first" in text
    assert "delta first" in text
    assert "<<<<<<< ours" in text
    assert machine.git("status", "--porcelain", cwd=ready).startswith("UU ")
    machine.install_echod()
    assert "resolved" in machine.run("sync", "resolve", ready)
    assert memory(ready) == file_of(A, B, C, D)
    assert machine.git("status", "--porcelain", cwd=ready).startswith("M ")


def test_the_stable_path_serves_where_the_path_has_no_echod(machine: Machine, ready: Path) -> None:
    (machine.bin / "echod").unlink()
    commit(machine, ready, file_of(A, B, D))
    machine.git("merge", "-m", "m", "side", cwd=ready)
    assert memory(ready) == file_of(A, B, C, D)


def test_a_resolution_keeps_what_was_typed_into_the_file(machine: Machine, ready: Path) -> None:
    machine.git("config", "--remove-section", "merge.echod", cwd=ready)
    commit(machine, ready, file_of(A, B, D))
    machine.git("merge", "side", cwd=ready, fails=True)
    typed = memory(ready) + "\nTyped by hand.\n"
    (ready / ECHO).write_text(typed)
    assert "resolved" in machine.run("sync", "resolve", ready, "--dry-run")
    assert memory(ready) == typed
    output = machine.run("sync", "resolve", ready)
    assert memory(ready) == file_of(A, B, C, D)
    blob = output.partition("git cat-file -p ")[2].split()[0]
    assert machine.git("cat-file", "-p", blob, cwd=ready) == typed


def test_setup_is_repeatable_and_status_names_what_is_missing(machine: Machine, repository: Path) -> None:
    assert "no-attribute" in machine.echod("sync", "status", repository, "--json").stdout
    assert "Nothing was changed" in machine.run("sync", "setup", repository, "--dry-run")
    assert not (repository / ".gitattributes").exists()
    (repository / ".gitattributes").write_text("*.png binary")
    machine.run("sync", "setup", repository)
    text = (repository / ".gitattributes").read_text()
    assert text.startswith("*.png binary\n/.rune/echoes/*/MEMORY.md merge=echod\n")
    assert "set up already" in machine.run("sync", "setup", repository)
    assert (repository / ".gitattributes").read_text() == text
    assert "by-entry" in machine.run("sync", "status", repository, "--json")
    machine.git("config", "--unset", "merge.echod.driver", cwd=repository)
    done = machine.echod("sync", "status", repository)
    assert done.returncode == 1
    assert "echod sync setup" in done.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("false", "would lose"),
        ("/nowhere/echod merge-driver %O %A %B %L %P", "would lose"),
        ("git merge-file --marker-size=%L %A %O %B", "by line"),
    ],
)
def test_doctor_runs_what_is_registered(command: str, words: str, machine: Machine, repository: Path) -> None:
    machine.run("sync", "setup", repository)
    machine.git("config", "merge.echod.driver", command, cwd=repository)
    assert words in machine.echod("doctor", repository).stdout


class RandomMerges:
    """Bring random branches together with each of git's commands, in one repository that is set up."""

    def __init__(self, machine: Machine, repository: Path) -> None:
        self.machine, self.repository, self.number = machine, repository, 0

    def __call__(self, base: bytes, ours: bytes, theirs: bytes) -> dict[str, bytes]:
        """Return the file after each command."""
        return {command: self._bring_together(command, base, ours, theirs) for command in _COMMANDS}

    def _bring_together(self, command: str, base: bytes, ours: bytes, theirs: bytes) -> bytes:
        self.number += 1
        one, other = f"one{self.number}", f"other{self.number}"
        self._git("checkout", "-qfB", other, "main")
        self._commit(base)
        self._git("branch", "-f", one)
        if command == "stash":
            (self.repository / ECHO).write_bytes(theirs)
            is_changed = self._git("status", "--porcelain") != ""
            self._git("stash", "-q")
            self._git("checkout", "-q", one)
            self._commit(ours)
            if is_changed:
                self._git("stash", "pop", "-q")
        else:
            self._commit(theirs)
            self._git("checkout", "-q", one)
            self._commit(ours)
            self._git(*command.split(), other)
        self.machine.git("reset", "-q", cwd=self.repository)
        return (self.repository / ECHO).read_bytes()

    def _commit(self, data: bytes) -> None:
        (self.repository / ECHO).write_bytes(data)
        self._git("commit", "-qam", "change", "--allow-empty")

    def _git(self, *words: str) -> str:
        return self.machine.git(*words, cwd=self.repository)


_COMMANDS = (
    "merge -q -m merged",
    "rebase -q --empty=keep",
    "cherry-pick --allow-empty --keep-redundant-commits",
    "stash",
)


@pytest.mark.parametrize(
    "examples",
    [pytest.param(2, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.fuzz)],
    ids=["a few", "many"],
)
@pytest.mark.timeout(3_600)
def test_random_histories_lose_and_double_nothing_with_any_command_of_git(
    examples: int, machine: Machine, ready: Path
) -> None:
    bring_together = RandomMerges(machine, ready)

    @settings(max_examples=examples, deadline=None, database=None, phases=[Phase.generate])
    @given(histories(2))
    def check(history: tuple[bytes, list[bytes]]) -> None:
        base, (ours, theirs) = history
        merged = Counter(contents(clean(base, ours, theirs)))
        assert merged == expected_entries(base, [ours, theirs])
        for command, data in bring_together(base, ours, theirs).items():
            assert Counter(contents(data)) == merged, command

    check()
