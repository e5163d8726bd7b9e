from __future__ import annotations

import time

import pytest

from echod.workflows import files
from echod.workflows.gate import format_time, format_time_of_day
from echod.workflows.markers import workflow_files
from echod.workflows.model import MarkerState

NOON = 1_773_748_800.0  # 2026-03-17T12:00:00Z


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2026-03-17T12:00:00Z", NOON),
        ("2026-03-17T12:00:00.500Z", NOON + 0.5),
        ("2026-03-17T12:00:00.319895Z", NOON + 0.319895),
        ("2026-03-17T14:00:00+02:00", NOON),
        (NOON, NOON),
        (int(NOON), NOON),
        ("1773748800", NOON),
        ("1773748800500", NOON + 0.5),
        ("1773748800000000", NOON),
        ("1773748800000000000", NOON),
        ("0", None),
        (0, None),
        ("1970-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59Z", None),
        ("review-abc", None),
        ("", None),
        ("٣٤٥٦٧٨٩٠١٢", None),
        (None, None),
        (True, None),
        (1e400, None),
        (float("nan"), None),
        ([], None),
    ],
)
def test_a_time_is_understood_in_every_form_seen(written: object, moment: float | None) -> None:
    assert files.parse_time(written) == (moment if moment is None else pytest.approx(moment))


@pytest.mark.parametrize("written", ["20260317-120000", "2026-03-17T12:00:00"])
def test_a_time_without_a_zone_is_local(written: str) -> None:
    expected = time.mktime((2026, 3, 17, 12, 0, 0, 0, 0, -1))

    assert files.parse_time(written) == expected


@pytest.mark.parametrize(
    ("value", "pid"),
    [
        ("27266", 27266),
        (" 27266\n", 27266),
        (27266, 27266),
        (2, 2),
        (4_194_303, 4_194_303),
        (4_194_304, None),
        ("0", None),
        ("1", None),
        (1, None),
        (0, None),
        (-5, None),
        ("-5", None),
        ("$PPID", None),
        ("null", None),
        ("unknown", None),
        ("", None),
        ("٣٣٣", None),
        ("12 34", None),
        ("0x10", None),
        (12.5, None),
        (True, None),
        (None, None),
        ([27266], None),
        pytest.param(10**5000, None, id="huge"),
    ],
)
def test_a_process_number_is_a_number_that_can_be_checked(value: object, pid: int | None) -> None:
    assert files.parse_pid(value) == pid


@pytest.mark.parametrize(
    ("status", "claim"),
    [
        ("active", MarkerState.RUNNING),
        ("RUNNING", MarkerState.RUNNING),
        ("dispatched", MarkerState.RUNNING),
        ("anything new", MarkerState.RUNNING),
        ("", MarkerState.ENDED),
        ("Completed-With-Gaps", MarkerState.ENDED),
        ("canceled", MarkerState.ENDED),
        ("timed out", MarkerState.ENDED),
    ],
)
def test_a_status_counts_as_running_unless_it_means_an_end(status: str, claim: MarkerState) -> None:
    assert workflow_files.marker_state(status) is claim


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (".rune-review-abc.json", True),
        (".rune-self-audit-20260317-120000.json", True),
        (".rune-anything-1.json", True),
        (".rune-review-.json", False),
        (".rune-review.json", False),
        (".rune-review-a b.json", False),
        (".rune-review-é.json", False),
        (".rune-review-abc.json.tmp", False),
        (".rune-compact-checkpoint.json", False),
        (".rune-shutdown-signal-1.json", False),
        (".rune-learn-watch", False),
        ("rune-review-abc.json", False),
    ],
)
def test_a_state_file_is_known_by_its_name(name: str, counts: bool) -> None:
    assert workflow_files.is_state_file(name) is counts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", {}),
        (" \n\n", {}),
        ("\ufeff---\nactive: true\n---\n", {"active": "true"}),
        ("---\nplan_file: 'a: b # c'\n---", {"plan_file": "a: b # c"}),
        ("---\nbranch: feat/#12\n---", {"branch": "feat/#12"}),
        ("---\nowner_pid: null\nsession_id: ~\n---", {"owner_pid": "", "session_id": ""}),
        ("---\nouter:\n  active: true\n---", {"outer": ""}),
        ("---\nactive: true\n---\nactive: false\n", {"active": "true"}),
        ("---\nactive: true\n", None),
        ("active: true\n---\n", None),
        ("\n---\nactive: true\n---\n", None),
    ],
)
def test_a_loop_s_frontmatter_is_read_line_by_line(text: str, said: dict[str, str] | None) -> None:
    assert workflow_files.parse_front_matter(text.encode()) == said


def test_a_moment_is_local_time_with_the_date_of_another_day() -> None:
    wall = time.strftime("%H:%M", time.localtime(NOON))

    assert format_time(NOON, NOON + 0.5) == wall
    assert format_time(NOON, NOON + 86_400) == time.strftime("%Y-%m-%d ", time.localtime(NOON)) + wall
    assert format_time(NOON, NOON - 86_400) == format_time(NOON, NOON + 86_400)
    assert format_time_of_day(NOON) == time.strftime("%H:%M:%S", time.localtime(NOON))
    assert format_time(1e300, NOON) == f"{1e300:.0f}"
