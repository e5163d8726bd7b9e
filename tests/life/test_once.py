"""`echod run --once` adds exactly the new entries, changes no other byte, and does nothing the second time."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from echod.memory.document import parse
from echod.memory.model import Document
from tests.support import NO_PRUNING, Home, corpus, finding_text, make_project


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def entries(data: bytes) -> list[str]:
    document = parse(data)
    assert isinstance(document, Document)
    return [block.entry.title for block in document.blocks if block.entry]


REAL = ["real-echoes/orchestrator", "real-echoes/planner"]
FIXTURES = [
    f"fixture-echoes/{revision}/{role}"
    for revision in ("first", "final")
    for role in ("orchestrator", "planner", "reviewer", "workers")
]


@pytest.mark.parametrize("place", [*REAL, *FIXTURES])
def test_findings_are_appended_and_every_other_byte_stays(home: Home, tmp_path: Path, place: str) -> None:
    root = make_project(tmp_path / "p", "reviewer")
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    memory.write_bytes(corpus(place, "MEMORY.md").read_bytes())
    os.utime(memory, (1_700_000_000, 1_700_000_000))
    before = memory.read_bytes()
    first, second = finding_text("Timeouts are missing"), finding_text("Money is in cents")
    (memory.parent / "ward-findings.md").write_text(first)
    (memory.parent / "seer-findings.md").write_text(second)

    Home(home.root, NO_PRUNING).run("run", "--once", root)

    after = memory.read_bytes()
    assert after.startswith(before)
    old, new = entries(before), entries(after)
    assert new[: len(old)] == old
    added = sorted(title.removeprefix("Pattern: ") for title in new[len(old) :])  # a form without kinds keeps it
    assert added == ["Money is in cents", "Timeouts are missing"]
    for learning in ("What was learnt about Money is in cents.", "What was learnt about Timeouts are missing."):
        assert learning in after.decode()
    assert not list(memory.parent.glob("*-findings.md"))


def test_a_second_run_writes_nothing(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p", "reviewer", "workers")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    home.run("run", "--once", root)
    before = tree(root)

    said = home.run("run", "--once", root)

    assert tree(root) == before
    assert "Nothing is left to do" in said


def test_the_same_finding_again_adds_nothing(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    for agent in ("ward", "seer"):
        (role / f"{agent}-findings.md").write_text(finding_text("Timeouts are missing"))
        home.run("run", "--once", root)

    assert (role / "MEMORY.md").read_text().count("Timeouts are missing") == 2  # once in the title, once in the text


def test_the_findings_of_agents_are_archived(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    text = finding_text("Timeouts are missing")
    (role / "ward-findings.md").write_text(text)

    home.run("run", "--once", root)

    (kept,) = (role / "archive/findings").iterdir()
    assert kept.name.endswith("-ward.md")
    assert kept.read_text() == text


def test_a_secret_does_not_reach_memory_or_archive(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    password = "tr0ub4dor" + "-and-3"
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(
        finding_text("Staging", f"Staging runs on postgres://shop:{password}@db.staging/shop.")
    )

    home.run("run", "--once", root)

    texts = [path.read_text() for path in root.rglob("*.md")]
    assert texts
    assert not any(password in text for text in texts)
    assert any("[REDACTED:" in text for text in texts)


def test_a_running_workflow_stops_everything(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / "tmp").mkdir()
    (root / "tmp/.rune-review-abc.json").write_text(f'{{"status": "active", "owner_pid": "{os.getpid()}"}}')
    findings = root / ".rune/echoes/reviewer/ward-findings.md"
    findings.write_text(finding_text("Timeouts are missing"))
    before = tree(root)

    said = home.run("run", "--once", root)

    assert tree(root) == before
    assert "waits" in said
    assert "rune-review-abc" in said.replace("\n", "").replace(" ", "")


def test_findings_that_are_young_wait_for_the_next_run(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    findings = root / ".rune/echoes/reviewer/ward-findings.md"
    findings.write_text(finding_text("Timeouts are missing"))

    result = home.echod("run", "--once", root, ECHOD_QUIET_SECONDS="600")

    assert result.returncode == 0
    assert findings.exists()
    assert "waits" in result.stdout


def test_report_mode_says_what_it_would_do_and_writes_nothing(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    before = tree(root)

    said = home.echod("run", "--once", root, ECHOD_MODE="report").stdout

    assert tree(root) == before
    assert "would do: 1 added" in said
    home.run("run", "--once", root)
    assert (root / ".rune/echoes/reviewer/MEMORY.md").exists()


def test_a_paused_project_is_not_changed_until_it_is_resumed(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    home.run("pause", root)
    before = tree(root)

    said = home.run("run", "--once", root)
    assert tree(root) == before
    assert "paused" in said

    home.run("resume", root)
    home.run("run", "--once", root)
    assert (root / ".rune/echoes/reviewer/MEMORY.md").exists()


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"# Reviewer\n\xff\xfe\n", "UTF-8"),
        (b"<!-- echo-schema: v9 -->\n# Reviewer\n", "schema"),
        (b"<<<<<<< HEAD\n## a\n=======\n## b\n>>>>>>> topic\n", "conflict"),
    ],
    ids=["not-utf8", "future-schema", "conflict-markers"],
)
def test_an_unreadable_memory_file_is_never_overwritten(home: Home, tmp_path: Path, data: bytes, word: str) -> None:
    root = make_project(tmp_path / "p")
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    memory.write_bytes(data)
    (memory.parent / "ward-findings.md").write_text(finding_text("Timeouts are missing"))
    before = tree(root)

    result = home.echod("run", "--once", root)

    assert result.returncode == 1
    assert word in result.stdout
    assert tree(root) == before
    assert word in home.run("run", "--once", root)  # not retried, but not forgotten either
