"""Lists, tables, data and documents: how many learnings they are, and what is none. Each row: a text, and the titles."""

from __future__ import annotations

from datetime import date

import pytest

from echod.memory.document import parse
from echod.memory.findings import Finding, read_findings
from echod.memory.model import Document, Layer, Unreadable

FILE_DATE = date(2026, 3, 1)

NOTHING = [
    "None.", "## Critical Findings\n\nNone.\n", "## Major issues\n_None._\n", "# Review\n\nNo issues found.\n",
    "# Session Learnings\n\nNo new learnings this session.\n", "## P1\nN/A\n\n## P2\n- none\n", "Nothing to report.\n",
    "# Audit\n\n## Critical (P1)\n\nNone identified.\n\n## High (P2)\n\nNo significant issues were found.\n", "No findings.\n",
    "## Security Issues\n\nNo vulnerabilities detected in this change.\n", "## Verdict: Pass\n", "- Critical: none\n- High: none\n",
    "## Findings\n\n| # | Finding | File |\n|---|---|---|\n| 1 | None | - |\n", "[]", '{"findings": []}', "```json\n[]\n```\n",
    "## Bugs\n\nNo bugs found in the reviewed files.\n## Suggestions\n\nNo further suggestions.\n", "LGTM\n",
    "# Ward findings\n\nI found no issues during the review.\n", "## Learnings\n\n- None\n", "## Blockers\n\u2705 None\n",
    "## Critical\n\n(none)\n\n## Major\n\n*None found.*\n", "## No issues found\n", "No new patterns, decisions or learnings this time.\n",
    "# Befunde\n\nKeine.\n", "There were no new findings in this session.\n", "## Next steps\n\nNone at this time.\n",
    "**Critical**: None\n**High**: None\n", "0 issues found.\n", "No action items.\n", "Nothing new was learned this session.\n",
]  # fmt: skip

TWO = ["The pool leaks in teardown", "The cache is stale after login"]

ENTRIES: dict[str, tuple[str, list[str]]] = {
    "bullets": (
        "- The pool leaks in teardown\n- The cache is stale after login\n",
        TWO,
    ),
    "numbers below a title": (
        "# Findings\n\n1. The pool leaks in teardown\n2. The cache is stale after login\n",
        TWO,
    ),
    "numbers with brackets": ("1) The pool leaks in teardown\n2) The cache is stale after login\n", TWO),
    "loose items": ("- The pool leaks in teardown\n\n- The cache is stale after login\n", TWO),
    "bold titles in items": (
        "1. **The pool leaks in teardown**: close it there.\n2. **The cache is stale after login** \u2014 clear it.\n",
        TWO,
    ),
    "items with details": (
        "- **The pool leaks in teardown**\n  - seen in CI\n  - close it\n- **The cache is stale after login**\n  Clear it.\n",
        TWO,
    ),
    "items with metadata that is not a learning's": (
        "- The pool leaks in teardown\n  - severity: high\n- The cache is stale after login\n  - severity: low\n",
        TWO,
    ),
    "announced": ("I found these problems:\n\n- The pool leaks in teardown\n- The cache is stale after login\n", TWO),
    "announced by a greeting": (
        "Here are my findings:\n\n* The pool leaks in teardown\n* The cache is stale after login\n",
        TWO,
    ),
    "by severity": (
        ("# Review\n\n## Critical\n\n- The pool leaks in teardown\n- The queue drops rows at night\n\n## Minor issues\n\n"
        "1. The cache is stale after login\n2. The log is too long to read\n"),
        ["The pool leaks in teardown", "The queue drops rows at night", "The cache is stale after login", "The log is too long to read"],
    ),
    "below the title of a review": (
        "# Review of the payment client\n\n1. The pool leaks in teardown\n2. The cache is stale after login\n",
        TWO,
    ),
    "nothing among them": (
        "- The pool leaks in teardown\n- None.\n- The cache is stale after login\n",
        TWO,
    ),
    "bold paragraphs": (
        "**The pool leaks in teardown**\n\nClose it there.\n\n**The cache is stale after login**\n\nClear it.\n",
        TWO,
    ),
    "bold leads": (
        "**The pool leaks in teardown.** Close it there.\n\n**The cache is stale after login.** Clear it.\n",
        TWO,
    ),
    "bold paragraphs with lists": (
        "**The pool leaks in teardown**\n- in CI\n- in tests\n\n**The cache is stale after login**\n- always\n",
        TWO,
    ),
    "a table": (
        ("| # | Severity | Finding | File |\n|---|---|---|---|\n| 1 | P1 | The pool leaks in teardown | `a.py:3` |\n"
        "| 2 | P2 | The cache is stale after login | `b.py` |\n"),
        TWO,
    ),
    "a table below a heading": (
        ("# Findings\n\nSee the table.\n\n| Issue | Recommendation |\n| :-- | --: |\n| The pool leaks in teardown | Close it |\n"
        "| The cache is stale after login | Clear it |\n"),
        ["See the table.", *TWO],
    ),
    "json": (
        ('[{"title": "The pool leaks in teardown", "severity": "high", "file": "a.py", "line": 3},'
        ' {"title": "The cache is stale after login", "description": "Clear it."}]'),
        TWO,
    ),
    "json in an object": (
        '{"agent": "ward", "findings": [{"issue": "The pool leaks in teardown"}, {"issue": "The cache is stale after login"}]}',
        TWO,
    ),
    "json in a fence": (
        'Here are my findings:\n\n```json\n[{"title": "The pool leaks in teardown"}, {"title": "The cache is stale after login"}]\n```\n',
        TWO,
    ),
    "json strings": ('["The pool leaks in teardown", "The cache is stale after login"]', TWO),
    "json lines": (
        '{"title": "The pool leaks in teardown"}\n{"title": "The cache is stale after login"}\n',
        TWO,
    ),
    "yaml": (
        "- title: The pool leaks in teardown\n  severity: high\n  file: a.py\n- title: The cache is stale after login\n",
        TWO,
    ),
    "yaml in an object": (
        "findings:\n  - learning: The pool leaks in teardown\n    evidence: a.py:3\n  - learning: The cache is stale after login\n",
        TWO,
    ),
    "yaml in a fence": (
        "```yaml\nlearnings:\n  - title: The pool leaks in teardown\n  - title: The cache is stale after login\n```\n",
        TWO,
    ),
    "steps belong to their sentence": (
        "The migration of the store takes three steps:\n\n1. Stop the worker of the queue\n2. Run the migration of the rows\n",
        ["The migration of the store takes three steps"],
    ),
    "names are no learnings": ("- a.py\n- b.py\n- c.py\n", ["a.py"]),
    "a list below a learning": ("## Close the pool\n- The pool leaks in teardown\n- It leaks in every test\n", ["Close the pool"]),
    "a table of figures": ("| Metric | Value |\n|---|---|\n| files | 3 |\n| lines | 9 |\n", ["| Metric | Value |"]),
    "json that is no finding": ('{"timeout": 3, "retries": 5}', ['{"timeout": 3, "retries": 5}']),
    "broken json": ('[{"title": "The pool leaks"', ['[{"title": "The pool leaks"']),
    "one learning with sections": (
        ("---\ntitle: Close the pool\ndate: 2026-02-11\ntags: [a, b]\n---\n\n# Close the pool\n\n## Context\n\nIt leaked.\n\n"
        "## Guidance\n\nClose it.\n\n## Related\n\n- `a.md`\n"),
        ["Close the pool"],
    ),
    "one learning with sections of its own": (
        "---\ntitle: Close the pool\ncategory: database\n---\n\n## Where it leaked\n\nIn CI.\n\n## The three places\n\nThere.\n",
        ["Close the pool"],
    ),
    "one learning without a title in front": (
        "---\ncategory: database\nseverity: high\n---\n# Close the pool\n\n## Problem\nIt leaks.\n\n## Solution\nClose it.\n",
        ["Close the pool"],
    ),
    "one learning without front matter": (
        "# Close the pool\n\n## Context\n\nIt leaked.\n\n## Guidance\n\nClose it.\n\n## When to apply\n\nAlways.\n",
        ["Close the pool"],
    ),
    "several below front matter": (
        "---\nagent: ward\ndate: 2026-02-11\n---\n# Findings\n\n## Close the pool\nIt leaks.\n\n## Clear the cache\nIt is stale.\n",
        ["Close the pool", "Clear the cache"],
    ),
    "a review with front matter": (
        "---\ntitle: Review findings\n---\n\n## Close the pool\nIt leaks.\n\n## Clear the cache\nIt is stale.\n",
        ["Close the pool", "Clear the cache"],
    ),
    "dated learnings below front matter": (
        ("---\ntitle: The payment client\ntags: a\n---\n### [2026-02-11] Pattern: Close the pool\n- Do it.\n\n"
        "### [2026-02-12] Pattern: Clear the cache\n- Do it.\n"),
        ["Close the pool", "Clear the cache"],
    ),
    "a heading in front matter": (
        ("---\ntitle: Close the pool\ndescription: |\n  How entries look:\n\n  ## Traced \u2014 An example (2026-01-01)\n"
        "# a comment\n---\nIt leaks.\n"),
        ["Close the pool"],
    ),
    "nothing and something": (
        "# Review\n\n## Critical Findings\n\nNone.\n\n## Minor Findings\n\n### M1: The port is checked late\nCheck it first.\n",
        ["The port is checked late"],
    ),
    "a claim that begins like nothing": ("No learnings survive a restart without a flush.\n", ["No learnings survive a restart without a flush."]),
    "nothing as an answer": ("## Default of the timeout\nNone.\n", ["Default of the timeout"]),
    "no errors are shown": ("No errors are shown to the user when the disk is full.\n", ["No errors are shown to the user when the disk is full."]),
}  # fmt: skip

DONE = [
    "Reviewed the payment module.", "Ran all tests.", "I fixed the login form.", "Added tests for the parser.", "Task completed.",
    "- [x] Updated the docs", "We have merged the branch.", "Refactored the queue. Renamed the worker.", "All 12 tests passed.",
    "Bumped the version to 1.2.3", "Implemented the export and deployed it.",
]  # fmt: skip
LEARNED = [
    "Fixed the leak because sockets stayed open.", "The pool must be closed.", "Reviewed code is safer.", "Use one pool.",
    "Fixed: the pool leaks in teardown.", "Added tests only run in CI when the flag is set.", "Close the pool in teardown.",
    "Shared pools break under load.", "Reviewed the payment module; it never closes the pool.",
]  # fmt: skip


def read(text: str) -> tuple[Finding, ...]:
    found = read_findings(text.encode(), agent="scout", file_date=FILE_DATE)
    assert not isinstance(found, Unreadable), found.reason
    return found


@pytest.mark.parametrize("text", NOTHING)
def test_a_report_of_nothing_is_no_learning(text: str) -> None:
    assert [finding.title for finding in read(text)] == []


@pytest.mark.parametrize(("text", "titles"), ENTRIES.values(), ids=ENTRIES.keys())
def test_each_learning_is_one_entry(text: str, titles: list[str]) -> None:
    assert [finding.title.rstrip(".") for finding in read(text)] == [title.rstrip(".") for title in titles]


@pytest.mark.parametrize("text", DONE)
def test_what_was_done_is_traced(text: str) -> None:
    assert [finding.layer for finding in read(text)] == [Layer.TRACED]


@pytest.mark.parametrize("text", LEARNED)
def test_a_learning_is_inscribed(text: str) -> None:
    assert [finding.layer for finding in read(text)] == [Layer.INSCRIBED]


def test_missing_metadata_is_filled() -> None:
    (finding,) = read("The pool leaks in teardown.\n")

    assert (finding.layer, finding.confidence, finding.verified, finding.source) == (
        Layer.INSCRIBED,
        0.5,
        FILE_DATE,
        "scout",
    )


@pytest.mark.parametrize(
    "text",
    [
        "## Critical\n\n- The pool leaks in teardown\n- The queue drops rows at night\n",
        "| Severity | Finding |\n|---|---|\n| Critical | The pool leaks |\n",
        '[{"title": "The pool leaks", "severity": "Critical"}]',
        "- [Critical] The pool leaks in teardown\n- [Critical] The queue drops rows\n",
        "1. **Critical**: the pool leaks in teardown\n2. **Critical**: the queue drops rows\n",
    ],
)
def test_the_severity_stays_with_each_learning(text: str) -> None:
    for finding in read(text):
        assert "critical" in " ".join([finding.title, finding.text, *(v for _, v in finding.fields)]).casefold()


def test_a_row_keeps_all_of_its_cells() -> None:
    (finding,) = read(
        "| ID | Finding | Where | Effort | Fix |\n|--|--|--|--|--|\n| X-7 | It leaks | `a.py:3` | small | close it |\n"
    )

    said = " ".join([finding.title, finding.text, finding.evidence or "", *(value for _, value in finding.fields)])
    assert all(word in said for word in ("X-7", "It leaks", "`a.py:3`", "small", "close it"))
    assert finding.evidence == "`a.py:3`"


def test_the_sections_of_one_learning_are_its_body() -> None:
    text = ENTRIES["one learning with sections"][0]
    (finding,) = read(text)

    assert finding.text == "## Context\n\nIt leaked.\n\n## Guidance\n\nClose it.\n\n## Related\n\n- `a.md`"
    assert finding.heading_date == date(2026, 2, 11)
    assert dict(finding.fields)["tags"] == "[a, b]"


@pytest.mark.parametrize(
    "front",
    [
        "name: x\ndescription: |\n  Text:\n\n  ## Traced \u2014 An example (2026-01-01)\n\n  **Source**: x\n",
        "name: x\n## Inscribed \u2014 An example (2026-01-01)\n",
        "title: 'x'\ntags:\n- a\n- b\n# ## Etched \u2014 An example (2026-01-01)\n",
    ],
)
def test_a_heading_in_the_front_matter_of_a_memory_file_is_no_entry(front: str) -> None:
    data = f"---\n{front}---\n\n# Memory\n\n## Inscribed \u2014 Close the pool (2026-01-02)\n\nDo it.\n".encode()
    document = parse(data)

    assert isinstance(document, Document)
    assert document.render() == data
    assert [block.entry.title for block in document.blocks if block.entry] == ["Close the pool"]


@pytest.mark.parametrize(
    "data",
    [
        "---\n\n## Inscribed \u2014 Close the pool (2026-01-02)\n\nDo it.\n\n---\n",
        "---\nSome prose first.\n\n## Inscribed \u2014 Close the pool (2026-01-02)\n\nDo it.\n\n---\n",
        "---\n### [2026-01-02] Pattern: Close the pool\n- **layer**: traced\n- Do it.\n---\n",
        "---\nname: x\n\n## Inscribed \u2014 Close the pool (2026-01-02)\n\n**Source**: x\n\nDo it.\n---\n",
    ],
)
def test_a_line_of_hyphens_does_not_hide_an_entry(data: str) -> None:
    document = parse(data.encode())

    assert isinstance(document, Document)
    assert [block.entry.title for block in document.blocks if block.entry] == ["Close the pool"]


@pytest.mark.parametrize(
    "unit",
    [
        "- a b c d e\n",
        "| a | b |\n",
        "**a b**\n\n",
        "- ",
        "---\na: b\n",
        "a: b\n",
        '{"a":',
        "[",
        "- a:\n",
        "no issues ",
        "a) b c d e f\nb) b c d e f\n",
        "title,file\n",
        '"a,',
        "<finding><a>",
        "\u2192 a b c d\n",
    ],
)
def test_any_list_is_read_in_linear_time(unit: str) -> None:
    read(unit * (20_000 // len(unit)))


@pytest.mark.parametrize(
    "text",
    [
        "\u2013 The lock must be freed after each run.\n\u2013 The row key lacks the region there.\n",
        "Severity | Finding\n---|---\nhigh | The lock must be freed.\nlow | The row key lacks the region.\n",
        '{"result": {"findings": [{"message": "The lock must be freed."}, {"message": "The row key lacks it."}]}}',
        '{"findings": {"F1": {"title": "The lock must be freed"}, "F2": {"title": "The row key lacks it"}}}',
        '{"runs": [{"results": [{"message": {"text": "The lock must be freed."}}, {"message": {"text": "It lacks it."}}]}]}',
        "---\ntitle: The lock\ntext: The lock must be freed.\n---\ntitle: The row key\ntext: The key lacks it.\n",
        "F1:\n  title: The lock must be freed\nF2:\n  title: The row key lacks it\n",
        "Finding 1: The lock must be freed after each run.\n\nFinding 2: The row key lacks the region there.\n",
        "<findings>\n<finding>The lock must be freed.</finding>\n<finding>The key lacks it.</finding>\n</findings>\n",
        "<finding><title>The lock</title><text>It must be freed.</text></finding>\n<finding><title>The key</title></finding>\n",
        '[[findings]]\ntitle = "The lock must be freed"\n\n[[findings]]\ntitle = "The row key lacks it"\nfile = "a.py"\n',
        "title,file,severity\nThe lock must be freed,a.py,P1\nThe row key lacks it,b.py,P2\n",
        '\ufeffSeverity;Finding;File\r\nhigh;The lock must be freed, soon;a.py\r\nlow;"The ""key""; it lacks it";b.py\r\n',
        "issue\tpath\nThe lock must be freed\ta.py\nThe row key lacks it\tb.py\n",
        "# Review\n\nfinding|file\nThe lock must be freed|a.py\nThe row key lacks it|b.py\n",
        "## Findings\n\n```csv\nid,issue,location\n1,The lock must be freed,a.py\n2,The row key lacks it,b.py\n```\n",
        "file,finding,line\na.py,Free the lock, then the row,3\nb.py,The row key lacks it,4\n",
        'file,finding\na.py,"The lock must be freed\nafter each run"\nb.py,The row key lacks it\n',
    ],
)
def test_two_findings_are_two_in_any_form(text: str) -> None:
    assert len(read_findings(text.encode(), agent="x", file_date=date(2026, 3, 2))) == 2


LABELS = [
    ("a)", "b)"), ("A.", "B."), ("(a)", "(b)"), ("a.", "b."), ("A:", "B:"), ("i)", "ii)"), ("I.", "II."), ("(1)", "(2)"),
    ("[1]", "[2]"), ("1:", "2:"), ("1 -", "2 -"), ("#1", "#2"), ("**1.**", "**2.**"), ("**A)**", "**B)**"), ("\u2460", "\u2461"),
    ("1\ufe0f\u20e3", "2\ufe0f\u20e3"), ("\u0430)", "\u0431)"), ("\u4e00\u3001", "\u4e8c\u3001"), ("\u2192", "\u2192"), ("\u2605", "\u2605"),
    ("\u2014", "\u2014"), ("F1:", "F2:"), ("SEC-001:", "SEC-002:"),
]  # fmt: skip


@pytest.mark.parametrize("gap", ["\n", "\n\n"], ids=["tight", "loose"])
@pytest.mark.parametrize("labels", LABELS, ids=" ".join)
def test_each_item_of_a_series_is_one_entry(labels: tuple[str, str], gap: str) -> None:
    found = read(f"{labels[0]} {TWO[0]}\n   when a test fails{gap}{labels[1]} {TWO[1]}\n   - seen in CI\n")

    assert [finding.title for finding in found] == TWO
    assert ["when a test fails" in finding.text for finding in found] == [True, False]
    assert ["seen in CI" in finding.text for finding in found] == [False, True]


def test_signs_with_a_meaning_stay_with_their_learnings() -> None:
    found = read(f"\u2705 {TWO[0]}\n\u274c {TWO[1]}\n")

    assert [finding.text[0] for finding in found] == ["\u2705", "\u274c"]


@pytest.mark.parametrize(
    "text",
    [
        "The release takes three steps:\na) build the wheel and sign it\nb) push the tag to the remote\n",
        "A. Smith measured the pool in the spring.\nHis figures are too low for our load.\n",
        "b) the second of the options in the proposal\nc) the third of the options in the proposal\n",
        "Never, ever, close it twice\nFirst, second, third, and so on\n",
        "Notes, mostly about the pool\nIt leaks, and it leaks in teardown\n",
        "\u2192 The pool leaks in teardown of the suite\nbut only there.\n",
    ],
)
def test_prose_with_letters_and_commas_is_one_learning(text: str) -> None:
    assert len(read(text)) == 1


def test_values_below_names_keep_their_places() -> None:
    first, second = read(
        'severity,finding,file,line\nP1,"Free the lock, then the row",a.py,3\nP2,The key lacks it,b.py,4\n'
    )

    assert (first.title, first.evidence, first.fields) == (
        "Free the lock, then the row",
        "a.py:3",
        (("severity", "P1"),),
    )
    assert (second.title, second.evidence) == ("The key lacks it", "b.py:4")


@pytest.mark.parametrize("text", ["title,file,severity\n", "finding;file\nNone;-\n"])
def test_names_above_no_values_are_no_learning(text: str) -> None:
    assert read(text) == ()
