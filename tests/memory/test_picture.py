"""The picture of a memory: only what is known is drawn, within 80 columns, and safely in a page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.cli.commands import picture as terminal
from echod.cli.commands.picture import _to_drawn_role
from echod.contract.codec import to_json
from echod.contract.entries import PictureReport
from echod.memory.archive import ArchivedEntry
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Layer
from echod.memory.picture import page
from echod.memory.picture.series import (
    NOT_KNOWN,
    OTHER_PROGRAMS,
    CommittedChange,
    LayerLines,
    RoleHistory,
    RolePicture,
    UndoneJob,
    draw_role,
    measure_lines,
    see_document,
)
from echod.memory.policy_model import Rule
from tests.support import finding_text

TODAY = date(2026, 11, 29)
GOLDEN = Path(__file__).with_name("picture.golden.json")


def day(back: int) -> date:
    return TODAY - timedelta(days=back)


def memory(*titles: str, layer: str = "inscribed") -> Document:
    text = "# Reviewer Memory\n\n" + "\n".join(finding_text(title, layer=layer) for title in titles)
    document = parse(text.encode())
    assert isinstance(document, Document)
    return document


def archived(title: str, back: int, rule: Rule = Rule.EXPIRED, job: int | None = 4) -> ArchivedEntry:
    text = finding_text(title)
    document = memory(title)
    identity = entry_ids("reviewer", document)[0]
    assert identity is not None
    return ArchivedEntry(
        identity, "reviewer", "MEMORY.md", rule.value, Layer.INSCRIBED, None, None, day(back), text, job=job
    )


def change(back: int, before: Document, after: Document, job: int = 1, **values: Any) -> CommittedChange:
    return CommittedChange(day(back), "consolidate", job, before, after)._replace(**values)


def drawn(history: RoleHistory, max_periods: int = 400) -> RolePicture:
    picture = draw_role(history, TODAY, max_periods)
    assert picture is not None
    return picture


def role(**values: Any) -> RoleHistory:
    return RoleHistory("reviewer", "/p/.rune/echoes", 150)._replace(**values)


def lines_on(picture: RolePicture, back: int) -> LayerLines | None:
    return next(period.lines for period in picture.periods if period.first <= day(back) <= period.last)


def test_every_line_of_a_file_is_counted_once() -> None:
    document = parse(b"# Title\n\n" + finding_text("A", layer="traced").encode() + b"\n## Own notes\n\nOne.\n")
    assert isinstance(document, Document)

    lines = measure_lines(document)

    assert lines.total == document.render().count(b"\n")
    assert (lines.traced, lines.inscribed) == (9, 0)


def test_a_day_between_two_different_contents_is_unknown() -> None:
    picture = drawn(role(backups=(see_document(day(9), memory("A")),), present=memory("A", "B")))

    assert lines_on(picture, 9) == measure_lines(memory("A"))
    assert [lines_on(picture, back) for back in range(8, 0, -1)] == [None] * 8
    assert lines_on(picture, 0) == measure_lines(memory("A", "B"))


def test_a_day_between_two_equal_contents_is_known() -> None:
    picture = drawn(role(backups=(see_document(day(9), memory("A")),), present=memory("A")))

    assert all(period.lines == measure_lines(memory("A")) for period in picture.periods)


def test_a_file_that_is_gone_is_unknown_after_its_last_sighting() -> None:
    picture = drawn(role(backups=(see_document(day(9), memory("A")),)))

    assert [period.lines is None for period in picture.periods] == [False] + [True] * 9


def test_additions_are_unknown_where_the_journal_does_not_reach() -> None:
    commits = (change(3, memory("A"), memory("A", "B")),)
    picture = drawn(role(backups=(see_document(day(5), memory("A")),), commits=commits, present=memory("A", "B")))

    assert [period.came for period in picture.periods] == [None, None, 1, 0, 0, 0]
    assert [(m.cause, m.title) for m in picture.came] == [("consolidate", "B")]


def test_what_a_rule_archived_left_by_that_rule_and_only_once() -> None:
    gone = archived("A", 2, Rule.NOISE_BUDGET, job=7)
    commits = (change(2, memory("A", "B"), memory("B"), job=7, kind="prune"),)
    picture = drawn(role(commits=commits, archived=(gone,), present=memory("B")))

    assert [(m.cause, m.title, m.reversed) for m in picture.left] == [("noise-budget", "A", False)]


def test_a_removal_by_another_program_is_attributed_to_it() -> None:
    commits = (change(6, memory("A"), memory("A", "B")), change(2, memory("B"), memory("B", "C"), job=2))
    picture = drawn(role(commits=commits, present=memory("C")))

    assert [(m.cause, m.title) for m in picture.left] == [(OTHER_PROGRAMS, "A"), (OTHER_PROGRAMS, "B")]


def test_a_removal_between_commits_without_contents_has_no_known_cause() -> None:
    commits = (
        change(6, memory("A"), memory("A", "B")),
        change(2, memory("B"), memory("B", "C"), job=3, follows_last=False),
    )
    picture = drawn(role(commits=commits, present=memory("B", "C")))

    assert [(m.cause, m.title) for m in picture.left] == [(NOT_KNOWN, "A")]


@pytest.mark.parametrize("undone_jobs", [frozenset[int](), frozenset({7})], ids=["in the file", "undone"])
def test_what_is_back_did_not_leave(undone_jobs: frozenset[int]) -> None:
    present = memory("A") if not undone_jobs else memory("B")
    picture = drawn(role(archived=(archived("A", 4, job=7),), undone_jobs=undone_jobs, present=present))

    assert [m.reversed for m in picture.left] == [True]
    assert sum(period.left for period in picture.periods) == 0


def test_a_role_without_any_trace_has_no_picture() -> None:
    assert draw_role(role(), TODAY, 50) is None


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 3)), min_size=1, max_size=12),
    st.integers(1, 130),
)
def test_periods_are_gapless_end_today_and_show_only_contents_that_were_seen(
    seen: Sequence[tuple[int, int]], max_periods: int
) -> None:
    documents = [memory(*(f"Title {n}" for n in range(size))) for size in range(4)]
    backups = tuple(see_document(day(back), documents[size]) for back, size in sorted(seen, reverse=True))

    picture = drawn(role(backups=backups), max_periods)

    assert len(picture.periods) <= max_periods
    assert picture.periods[-1].last == TODAY
    assert all(
        a.last + timedelta(days=1) == b.first for a, b in zip(picture.periods, picture.periods[1:], strict=False)
    )
    assert {period.lines for period in picture.periods} <= {None, *(backup.lines for backup in backups)}


def full_history() -> RoleHistory:
    commits = (
        change(12, memory("A"), memory("A", "B"), job=3),
        change(5, memory("A", "B", "C"), memory("B", "C"), job=4, kind="prune"),
        change(4, memory("B", "C"), memory("C"), job=5, kind="forget"),
        change(3, memory("C"), memory("B", "C"), job=6, kind="undo"),
    )
    return role(
        backups=(see_document(day(40), memory("A", layer="traced")),),
        commits=commits,
        archived=(
            archived("<script>alert(1)</script> & \x1b[31m", 33, Rule.TOPIC, job=1),
            archived("A", 5, Rule.EXPIRED, job=4),
            archived("B", 4, Rule.FORGOTTEN, job=5),
        ),
        undone=(UndoneJob(day(3), 5, "forget", 6, "an entry forgotten"),),
        undone_jobs=frozenset({5}),
        present=memory("B", "C"),
    )


def test_the_data_of_a_picture_are_those_of_the_golden_file() -> None:
    """To accept a change: delete the file, run this test twice and read the difference."""
    data = to_json(PictureReport((_to_drawn_role(drawn(full_history())),))) + "\n"
    if not GOLDEN.exists():
        GOLDEN.write_text(data)
        pytest.fail("the golden file was missing and is written now; look at it")

    assert json.loads(data) == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("max_periods", [1, 7, terminal.MAX_COLUMNS])
def test_the_drawing_has_at_most_80_columns_and_no_control_characters(max_periods: int) -> None:
    picture = drawn(full_history(), max_periods)
    lines = [*terminal.draw_lines(picture, TODAY), *terminal.draw_key([picture])]

    assert [line for line in lines if len(line) > 80 or not line.isprintable()] == []
    assert any("expired" in line and "2026-11-24" in line for line in lines)
    assert any("undone: job 5" in line for line in lines)


def test_unknown_columns_are_marked_in_the_drawing() -> None:
    picture = drawn(role(backups=(see_document(day(2), memory("A")),), present=memory("A", "B")))

    rows = list(terminal.draw_lines(picture, TODAY))

    assert [row for row in rows[1:7] if "····" not in row] == []
    assert all("·" not in row for row in terminal.draw_lines(drawn(role(present=memory("A"))), TODAY))


def rendered(history: RoleHistory) -> str:
    return page.render([drawn(history, 120)], ["<b>a problem</b>"], TODAY, "2026-11-29 10:00")


def test_every_text_in_the_page_is_escaped() -> None:
    text = rendered(full_history()._replace(role="<img src=x>"))

    assert "<script" not in text
    assert "<img" not in text
    assert "<b>" not in text
    assert "&lt;b&gt;a problem&lt;/b&gt;" in text
    assert "\x1b" not in text


def test_the_page_names_nothing_that_could_be_loaded() -> None:
    text = rendered(full_history())

    assert "default-src 'none'" in text
    assert re.findall(r"\b(?:src|href|action|srcset|data)=|url\((?!#)|@import|https?:", text) == []


def test_each_chart_has_a_table_beneath_it_with_the_same_numbers() -> None:
    history = full_history()
    text = rendered(history)
    picture = drawn(history, 120)

    after_charts = text.split("</svg>")[1:]
    tables = [part.split("<svg")[0] for part in after_charts]
    assert [table.count("<table>") > 0 for table in tables] == [True, True]
    present = picture.periods[-1].lines
    assert present is not None
    cells = "".join(f"<td>{value}</td>" for value in (*present, present.total))
    assert cells in tables[0]
    assert "<td>2026-11-17</td><td>1</td><td>0</td><td>0</td>" in tables[1]
    assert "unknown" in tables[0]


def test_a_year_of_daily_changes_makes_a_small_page() -> None:
    backups = tuple(see_document(day(back), memory(*(f"T{n}" for n in range(back % 17)))) for back in range(365, 0, -1))
    gone = tuple(archived(f"Entry {n} with a title of some length", n % 365) for n in range(600))

    size = len(rendered(role(backups=backups, archived=gone, present=memory("A"))).encode())

    assert size < 100_000
