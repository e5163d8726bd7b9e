"""The state of a citation follows what happened to the cited lines."""

from __future__ import annotations

import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from echod.clock import local_date
from echod.memory.evidence.compare import EvidenceState
from tests.evidence.conftest import DAY, LINES, History, distinct_lines, git

VALID, MOVED, CHANGED, GONE, UNKNOWN = EvidenceState
CITE = "src/app.py:10-12"


def test_untouched_lines_are_valid(history: History) -> None:
    assert history.check(CITE) == (CITE, VALID, "src/app.py:10-12", history.root / "src/app.py")


def test_lines_below_new_ones_are_moved(history: History) -> None:
    history.write("src/app.py", ["# new", *LINES])
    assert history.check(CITE)[1:3] == (MOVED, "src/app.py:11-13")


def test_reformatted_lines_are_not_changed(history: History) -> None:
    wrapped = [line.replace("(", "(\n    ").replace(")", ",\n)") for line in LINES[9:12]]
    history.write("src/app.py", [*LINES[:9], *wrapped, *LINES[12:]])
    assert history.check(CITE).state is VALID


def test_edited_lines_are_changed_where_they_are(history: History) -> None:
    history.write("src/app.py", [*LINES[:9], "value_10 = compute(99, base=70)", *LINES[10:]])
    assert history.check(CITE)[1:3] == (CHANGED, "src/app.py:10-12")


def test_something_appended_to_the_last_line_is_a_change(history: History) -> None:
    history.write("src/app.py", [*LINES[:11], LINES[11] + " or None", *LINES[12:]])
    assert history.check(CITE).state is CHANGED


def test_something_before_the_first_line_is_a_change(history: History) -> None:
    history.write("src/app.py", [*LINES[:9], "# " + LINES[9], *LINES[10:]])
    assert history.check(CITE).state is CHANGED


def test_removed_lines_are_gone(history: History) -> None:
    history.write("src/app.py", [*LINES[:9], *LINES[12:]])
    assert history.check(CITE)[1:3] == (GONE, None)


def test_lines_that_others_took_the_place_of_are_changed(history: History) -> None:
    history.write("src/app.py", [*LINES[:9], "load(path)", "drain(queue)", "close(file)", *LINES[12:]])
    assert history.check(CITE)[1:3] == (CHANGED, "src/app.py:10-12")


def test_removed_lines_are_gone_also_where_the_lines_around_them_were_edited(history: History) -> None:
    lines = distinct_lines(40)
    history.write("src/other.py", lines)
    history.commit()
    history.write("src/other.py", [*lines[:6], *(f"{line}  # above" for line in lines[6:9]), *lines[12:]])
    assert history.check("src/other.py:10-12", DAY + timedelta(days=1)).state is GONE


def test_a_removed_line_is_gone_although_another_one_is_alike(history: History) -> None:
    lines = [*distinct_lines(40), "return only_valid(command, args)"]
    history.write("src/other.py", [*lines[:10], "if error := only_valid(command, args):", *lines[10:]])
    history.commit()
    history.write("src/other.py", [*lines[:10], "if error := only_valid(command, args):", *lines[10:-1]])
    assert history.check("src/other.py:42", DAY + timedelta(days=1)).state is GONE


class TestInAnotherPlace:
    """Lines that are not between those that were around them may be elsewhere in the file."""

    LINES = distinct_lines(60)
    CITE = "src/other.py:21-23"

    @pytest.fixture(autouse=True)
    def _base(self, history: History) -> None:
        history.write("src/other.py", self.LINES)
        history.commit()

    def check(self, history: History, lines: list[str]) -> tuple[EvidenceState, str | None]:
        history.write("src/other.py", lines)
        return history.check(self.CITE, DAY + timedelta(days=1))[1:3]

    def test_lines_that_were_moved_to_the_place_of_removed_ones_replace_nothing(self, history: History) -> None:
        lines = self.LINES
        moved = [*lines[:20], *lines[40:43], *lines[23:40], *lines[43:]]
        assert self.check(history, moved) == (GONE, None)

    def test_edited_lines_a_little_above_their_place_are_changed(self, history: History) -> None:
        lines = self.LINES
        edited = [line.replace("(", "(limit, ") for line in lines[20:23]]
        assert self.check(history, [*lines[:17], *edited, *lines[17:20], *lines[23:]]) == (
            CHANGED,
            "src/other.py:18-20",
        )

    def test_edited_lines_far_from_their_place_are_changed_by_their_rare_words(self, history: History) -> None:
        lines = self.LINES
        edited = [line.replace("(", "(limit, ") for line in lines[20:23]]
        assert self.check(history, [*lines[:20], *lines[23:], *edited]) == (CHANGED, "src/other.py:58-60")

    def test_new_lines_far_away_of_common_words_are_no_edited_ones(self, history: History) -> None:
        common = [f"if config is {word}:" for word in ("None", "empty", "small", "large", "other")]
        lines = [*self.LINES[:20], *common[:3], *self.LINES[23:], *common[3:]]
        history.write("src/other.py", lines)
        history.commit()
        history.write("src/other.py", [*lines[:20], *lines[23:], "", "if config is wrong:", "if config is right:"])
        assert history.check(self.CITE, DAY + timedelta(days=2)).state is GONE

    def test_a_short_entry_of_a_list_that_was_sorted_is_moved(self, history: History) -> None:
        names = [f'"{line.partition(".")[0]}",' for line in self.LINES]
        history.write("src/other.py", names)
        history.commit()
        history.write("src/other.py", [*names[:20], *names[21:50], names[20], *names[50:]])
        assert history.check("src/other.py:21", DAY + timedelta(days=2))[1:3] == (MOVED, "src/other.py:50")

    def test_lines_that_were_joined_with_others_are_changed(self, history: History) -> None:
        lines = [*self.LINES[:20], "def send(", "self,", "request: Request,", "check: Check,", "):", *self.LINES[20:]]
        history.write("src/other.py", lines)
        history.commit()
        joined = "def send(self, request: Request, timeout: float = 3.0, retries: int = 9, log: Log = ROOT):"
        history.write("src/other.py", [*lines[:20], joined, *lines[25:]])
        found = history.check("src/other.py:23-24", DAY + timedelta(days=2))
        assert found[1:3] == (CHANGED, "src/other.py:21")


def test_a_short_line_that_is_left_between_new_ones_is_moved(history: History) -> None:
    lines = distinct_lines(20)
    history.write("src/other.py", [*lines[:10], "try:", *lines[10:]])
    history.commit()
    history.write("src/other.py", [*lines[:10], "new = 1", "try:", "new = 2", *lines[10:]])
    assert history.check("src/other.py:11", DAY + timedelta(days=1))[1:3] == (MOVED, "src/other.py:12")


def test_a_few_lines_that_are_left_of_many_are_a_change(history: History) -> None:
    history.write("src/list.toml", ["bench = false", "", "[dependencies]", 'kernel32-sys = "0.2.2"', 'api = "0.2.8"'])
    history.commit()
    history.write("src/list.toml", ["bench = false", "", "[dependencies]", 'api = { version = "3", features = ["a"] }'])
    assert history.check("src/list.toml:3-5", DAY + timedelta(days=1)).state is CHANGED


def test_a_part_of_the_lines_is_a_change(history: History) -> None:
    history.write("src/app.py", [*LINES[:9], LINES[11], *LINES[20:]])
    assert history.check(CITE).state is CHANGED


def test_a_removed_file_is_gone(history: History) -> None:
    (history.root / "src/app.py").unlink()
    assert history.check(CITE).state is GONE
    assert history.check("src/app.py").state is GONE


def test_a_renamed_file_is_moved(history: History) -> None:
    (history.root / "src/app.py").rename(history.root / "src/main.py")
    assert history.check(CITE)[1:3] == (MOVED, "src/main.py:10-12")
    assert history.check("src/app.py")[1:3] == (MOVED, "src/main.py")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("src/app.js", "src/app.ts"),
        (".github/lock.yml", ".github/lock.yaml"),
        ("lock.yml", ".lock.yaml"),
        ("app.py", "app/core.py"),
        ("test/test-app.js", "test/app.js"),
    ],
)
def test_a_renamed_file_is_found_by_its_name_where_most_of_it_was_edited(
    history: History, before: str, after: str
) -> None:
    history.write(before, LINES)
    history.commit()
    (history.root / before).unlink()
    history.write(after, [*(f"{line}  # {n}" for n, line in enumerate(LINES[:9])), *LINES[9:12], "end = True"])
    assert history.check(f"{before}:10-12", DAY + timedelta(days=1))[1:3] == (MOVED, f"{after}:10-12")


def test_a_file_that_was_there_before_is_not_a_renamed_one(history: History) -> None:
    history.write("src/app_old.py", [*LINES[:9], "value_10 = compute(99, base=70)", *LINES[10:]])
    history.commit()
    (history.root / "src/app.py").unlink()
    assert history.check(CITE, DAY + timedelta(days=1)).state is GONE


def test_lines_of_a_removed_file_are_moved_into_a_larger_one_that_was_there_before(history: History) -> None:
    others = distinct_lines(400)
    history.write("lib/large.py", others)
    history.commit()
    (history.root / "src/app.py").unlink()
    history.write("lib/large.py", [*others[:300], *LINES[7:20], *others[300:]])
    assert history.check(CITE, DAY + timedelta(days=1))[1:3] == (MOVED, "lib/large.py:303-305")
    history.commit()
    (history.root / "lib/large.py").unlink()
    assert history.check(CITE, DAY + timedelta(days=1)).state is GONE


def test_a_file_that_became_a_part_of_another_one_has_its_edited_lines_there(history: History) -> None:
    others = distinct_lines(400)
    history.write("lib/large.py", others)
    history.commit()
    (history.root / "src/app.py").unlink()
    edited = [*LINES[:9], "value_10 = compute(99, base=70)", *LINES[10:]]
    history.write("lib/large.py", [*others[:300], *edited, *others[300:]])
    assert history.check(CITE, DAY + timedelta(days=1))[1:3] == (CHANGED, "lib/large.py:310-312")


def test_lines_of_a_removed_file_that_another_one_had_before_are_gone(history: History) -> None:
    others = distinct_lines(400)
    history.write("lib/large.py", [*others, *LINES[7:20]])
    history.commit()
    (history.root / "src/app.py").unlink()
    history.write("lib/large.py", ["# new", *others, *LINES[7:20]])
    assert history.check(CITE, DAY + timedelta(days=1)).state is GONE


def test_lines_of_a_renamed_file_that_went_into_another_one_are_moved(history: History) -> None:
    history.write("lib/large.py", others := distinct_lines(400))
    history.commit()
    (history.root / "src/app.py").rename(history.root / "src/main.py")
    history.write("src/main.py", [*LINES[:9], *LINES[12:]])
    history.write("lib/large.py", [*others, *LINES[8:14]])
    assert history.check(CITE, DAY + timedelta(days=1))[1:3] == (MOVED, "lib/large.py:402-404")


def test_edited_lines_of_a_renamed_file_are_changed(history: History) -> None:
    (history.root / "src/app.py").unlink()
    history.write("lib/app.py", [*LINES[:9], "value_10 = compute(99, base=70)", *LINES[10:]])
    assert history.check(CITE)[1:3] == (CHANGED, "lib/app.py:10-12")


def test_the_base_is_the_content_at_the_date_of_the_entry(history: History) -> None:
    history.write("src/app.py", ["# new", *LINES])
    history.commit()
    assert history.check(CITE, DAY).state is MOVED
    assert history.check(CITE, DAY + timedelta(days=1)).state is VALID


def test_a_file_that_was_committed_after_the_date_has_its_first_commit_as_base(history: History) -> None:
    history.write("src/late.py", LINES)
    history.commit()
    history.write("src/late.py", LINES[5:])
    history.commit()
    assert history.check("src/late.py:10", DAY)[1:3] == (MOVED, "src/late.py:5")


def test_lines_of_which_git_knows_nothing_are_unknown(tmp_path: Path) -> None:
    project = History(tmp_path / "other")
    project.write("src/app.py", LINES)
    assert project.check("src/app.py:90", None).state is UNKNOWN
    assert project.check("src/app.py", None).state is VALID
    assert project.check("src/none.py:3", None).state is UNKNOWN


def test_a_file_that_was_never_in_the_project_is_unknown(history: History) -> None:
    history.write("src/later.py", LINES)
    history.commit()
    (history.root / "src/later.py").unlink()
    history.commit()

    for day in (None, local_date(time.time()), DAY):
        assert history.check("src/none.py:3", day).state is UNKNOWN
        assert history.check("src/none.py", day).state is UNKNOWN
        assert history.check("src/later.py:3", day).state is GONE


@pytest.mark.parametrize("cite", ["/etc/passwd:1", "../other/a.py:3", "~/.profile", "src/link.py:2"])
def test_a_file_outside_of_the_project_is_unknown(history: History, tmp_path: Path, cite: str) -> None:
    (tmp_path / "outside.py").write_text("a\nb\n")
    (history.root / "src/link.py").symlink_to(tmp_path / "outside.py")
    assert history.check(cite, None).state is UNKNOWN


def test_a_file_that_cannot_be_read_is_unknown_and_not_gone(history: History) -> None:
    (history.root / "src/app.py").unlink()
    (history.root / "src/app.py").symlink_to(history.root / "src/app.py")
    assert history.check(CITE).state is UNKNOWN


def test_a_path_relative_to_another_directory_is_found_if_only_one_file_fits(history: History) -> None:
    assert history.check("app.py:3", None)[1:3] == (VALID, "src/app.py:3")
    history.write("lib/app.py", LINES)
    assert history.check("app.py:3", None).state is UNKNOWN


def test_equal_lines_are_told_apart_by_what_is_around_them(history: History) -> None:
    lines = [line for number in range(6) for line in (f"def f{number}():", f"    use({number})", "    return None", "")]
    history.write("src/same.py", lines)
    history.commit()
    history.write("src/same.py", [*lines[:8], *lines[12:]])
    third = "src/same.py:11"
    assert history.check(third, DAY + timedelta(days=1)).state is GONE
    assert history.check("src/same.py:15", DAY + timedelta(days=1))[1:3] == (MOVED, "src/same.py:11")


class TestRepositories:
    """Histories are read wherever git keeps them."""

    def test_a_linked_worktree(self, history: History, tmp_path: Path) -> None:
        git(history.root, "worktree", "add", "-q", str(tmp_path / "copy"))
        copy = History.__new__(History)
        copy.root = tmp_path / "copy"
        copy.write("src/app.py", ["# new", *LINES])
        assert copy.check(CITE).state is MOVED

    def test_a_submodule(self, history: History, tmp_path: Path) -> None:
        outer = History(tmp_path / "outer")
        outer.write("a.py", LINES)
        git(outer.root, "submodule", "add", "-q", str(history.root), "part")
        outer.commit()
        outer.write("part/src/app.py", [*LINES[:9], *LINES[12:]])
        assert outer.check("part/src/app.py:10-12").state is GONE

    def test_a_submodule_that_is_not_checked_out_is_unknown(self, history: History, tmp_path: Path) -> None:
        outer = History(tmp_path / "outer")
        outer.write("a.py", LINES)
        git(outer.root, "submodule", "add", "-q", str(history.root), "part")
        outer.commit()
        git(outer.root, "worktree", "add", "-q", str(tmp_path / "copy"))
        copy = History.__new__(History)
        copy.root = tmp_path / "copy"
        assert copy.check("part/src/app.py:10-12").state is UNKNOWN
        assert copy.check("part/src/app.py").state is UNKNOWN
        assert copy.check("apart/src/app.py:3").state is UNKNOWN

    def test_a_shallow_clone_knows_nothing_before_its_beginning(self, history: History, tmp_path: Path) -> None:
        history.write("src/app.py", ["# new", *LINES])
        history.commit()
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{history.root}", "shallow")
        shallow = History.__new__(History)
        shallow.root = tmp_path / "shallow"
        assert shallow.check(CITE, DAY + timedelta(days=1)).state is VALID
        assert shallow.check(CITE, DAY).state is VALID  # the earliest content that it has

    def test_a_packed_history(self, history: History) -> None:
        history.write("src/app.py", ["# new", *LINES])
        history.commit()
        git(history.root, "gc", "-q")
        assert history.check(CITE).state is MOVED

    def test_a_damaged_history_is_no_error(self, history: History) -> None:
        for file in (history.root / ".git/objects").rglob("*"):
            if file.is_file():
                file.unlink()
        assert history.check(CITE)[1:3] == (VALID, "src/app.py:10-12")


class TestChange:
    """The commit that changed cited lines is named."""

    def test_the_commit_that_edited_them(self, history: History) -> None:
        history.write("src/other.py", LINES)
        history.commit()
        history.write("src/app.py", [*LINES[:9], "value_10 = compute(99, base=70)", *LINES[10:]])
        guilty = history.commit()
        history.write("src/app.py", ["# new", *LINES[:9], "value_10 = compute(99, base=70)", *LINES[10:]])
        history.commit()
        change = history.change(CITE)
        assert change is not None
        assert change.commit == guilty

    def test_the_commit_that_removed_the_file(self, history: History) -> None:
        (history.root / "src/app.py").unlink()
        guilty = history.commit()
        history.write("src/other.py", ["x = 1"])
        history.commit()
        change = history.change(CITE)
        assert change is not None
        assert change.commit == guilty

    def test_the_commit_of_a_merged_branch_and_not_the_merge(self, history: History) -> None:
        git(history.root, "checkout", "-qb", "feature")
        history.write("src/app.py", [*LINES[:9], *LINES[12:]])
        guilty = history.commit()
        git(history.root, "checkout", "-q", "-")
        history.write("src/other.py", LINES)
        history.commit()
        git(history.root, "merge", "-q", "--no-edit", "feature", day=date(2026, 10, 9))
        change = history.change(CITE)
        assert change is not None
        assert change.commit == guilty

    def test_no_commit_for_a_change_that_is_not_committed(self, history: History) -> None:
        history.write("src/app.py", [*LINES[:9], *LINES[12:]])
        assert history.change(CITE) == (None, None)
