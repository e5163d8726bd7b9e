"""`echod scrub` lists the locations of secrets without showing one, and removes them without other changes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import Home, finding_text, make_project, until

PASSWORD = "tr0ub4dor" + "-and-3"
LINE = f"Staging runs on postgres://shop:{PASSWORD}@db.staging/shop."
CLEAN = LINE.replace(PASSWORD, "[REDACTED:connection-string]")


def etched_entry(title: str, text: str) -> str:
    return f"## Etched \u2014 {title} (2026-11-01)\n\n**Source**: `test`\n\n{text}\n\n"


@pytest.fixture
def role(tmp_path: Path) -> Path:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    (role / "archive/findings").mkdir(parents=True)
    (role / "MEMORY.md").write_text(
        f"# Reviewer\n\n{LINE}\n\n"
        + finding_text("Staging", LINE)
        + "\n"
        + etched_entry("Forever", LINE)
        + finding_text("Money")
    )
    (role / "knowledge.md").write_text(f"# Knowledge\n\n## Hosts\n\n- {LINE}\n")
    (role / "ward-findings.md").write_text(finding_text("Waiting", LINE))
    (role / "archive/MEMORY-20261101-120000.md").write_text(finding_text("Backup", LINE))
    (role / "archive/pruned-2026.md").write_text("# Pruned\n\n" + finding_text("Old", LINE) + "\r\n\r\nEnd\r\n")
    (role / "archive/findings/2026-11-01-ward.md").write_text(LINE + "\n")
    return role


def file_texts(role: Path) -> dict[str, str]:
    return {
        str(path.relative_to(role)): path.read_bytes().decode()
        for path in role.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def project_root_of(role: Path) -> Path:
    return role.parents[2]


def test_a_dry_run_lists_every_location_and_changes_nothing(home: Home, role: Path) -> None:
    before = file_texts(role)

    result = home.echod("scrub", project_root_of(role), "--dry-run")

    assert result.returncode == 1
    assert file_texts(role) == before
    assert PASSWORD not in result.stdout + result.stderr
    for name in before:
        assert name in result.stdout
    assert 'in "Staging"' in result.stdout
    assert "8 secrets found. Nothing was changed" in result.stdout


def test_secrets_are_removed_and_every_other_byte_stays(home: Home, role: Path) -> None:
    before = file_texts(role)

    result = home.echod("scrub", project_root_of(role), "--include-protected")

    assert result.returncode == 0, result.stdout + result.stderr
    assert file_texts(role) == {name: text.replace(LINE, CLEAN) for name, text in before.items()}
    assert "8 secrets removed, 0 left" in result.stdout
    assert PASSWORD not in result.stdout
    assert "No secret was found" in home.run("scrub", project_root_of(role))


def test_etched_entries_are_only_changed_on_request(home: Home, role: Path) -> None:
    result = home.echod("scrub", project_root_of(role))

    assert result.returncode == 1
    assert "7 secrets removed, 1 left" in result.stdout
    assert etched_entry("Forever", LINE) in (role / "MEMORY.md").read_text()
    assert "--include-protected" in result.stdout


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", 0), (b"n\n", 1)], ids=["yes", "no"])
def test_on_a_terminal_the_user_is_asked(home: Home, role: Path, answer: bytes, left: int) -> None:
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "echod", "scrub", str(project_root_of(role))],
        env=home.environ,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    ) as process:
        os.close(slave)
        os.write(master, answer)
        said = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # the other side is closed
                break
            said += part
        code = process.wait(30)
    os.close(master)

    assert b"etched entries and notes?" in said
    assert code == bool(left), said
    assert f"{left} left".encode() in said


def test_json_contains_the_same(home: Home, role: Path) -> None:
    report = home.json("scrub", project_root_of(role), "--include-protected")

    assert (report["schema"], report["stripped"], report["remaining"]) == (1, 8, 0)
    (memory,) = [file for file in report["files"] if file["path"].endswith("reviewer/MEMORY.md")]
    assert memory["tracked"] is False
    assert [(place["entry"], place["kind"], place["confirm"]) for place in memory["secrets"]] == [
        (None, "connection-string", False),
        ("Staging", "connection-string", False),
        ("Forever", "connection-string", True),
    ]
    lines = (role / "MEMORY.md").read_text().splitlines()
    assert all("[REDACTED:" in lines[place["line"] - 1] for place in memory["secrets"])
    assert PASSWORD not in str(report)


def test_a_running_workflow_is_not_disturbed_unless_forced(home: Home, role: Path) -> None:
    root = project_root_of(role)
    (root / "tmp").mkdir()
    (root / "tmp/.rune-review-abc.json").write_text(f'{{"status": "active", "owner_pid": "{os.getpid()}"}}')
    before = file_texts(role)

    refused = home.echod("scrub", root)
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert file_texts(role) == before

    assert home.echod("scrub", root, "--include-protected", "--force").returncode == 0
    assert PASSWORD not in str(file_texts(role))


def test_report_mode_removes_nothing(home: Home, role: Path) -> None:
    before = file_texts(role)

    result = home.echod("scrub", project_root_of(role), "--include-protected", ECHOD_MODE="report")

    assert result.returncode == 1
    assert file_texts(role) == before
    assert "report" in result.stdout


def test_files_that_git_tracks_are_named(home: Home, role: Path) -> None:
    root = project_root_of(role)
    for command in (["init", "-q"], ["add", ".rune/echoes/reviewer/knowledge.md"]):
        subprocess.run(["git", *command], cwd=root, check=True, env=home.environ)

    result = home.echod("scrub", root, "--dry-run")

    assert "knowledge.md  (tracked by git)" in result.stdout
    assert "pruned-2026.md  (tracked" not in result.stdout
    assert "history" in result.stdout


def test_an_unreadable_file_is_listed_and_not_changed(home: Home, role: Path) -> None:
    odd = role / "archive/odd.md"
    odd.write_bytes(b"\xff\xfe " + LINE.encode())
    before = odd.read_bytes()

    result = home.echod("scrub", project_root_of(role), "--include-protected")

    assert result.returncode == 1
    assert odd.read_bytes() == before
    assert "not UTF-8" in " ".join(result.stdout.split())
    assert "8 secrets removed, 1 left" in result.stdout


def test_a_title_with_a_secret_or_with_control_characters_is_not_shown(home: Home, role: Path) -> None:
    (role / "MEMORY.md").write_text(finding_text(f"password={PASSWORD} \x1b[31m", LINE))

    result = home.echod("scrub", project_root_of(role), "--dry-run")

    assert PASSWORD not in result.stdout
    assert "\x1b" not in result.stdout


def test_it_is_listed_among_the_jobs(home: Home, role: Path) -> None:
    home.echod("scrub", project_root_of(role), "--include-protected")

    (row,) = home.json("jobs")["jobs"]

    assert (row["kind"], row["state"], row["result"]) == ("scrub", "done", "8 secrets taken out")


def test_undo_restores_the_exact_memory(home: Home, role: Path) -> None:
    before = file_texts(role)
    home.echod("scrub", project_root_of(role), "--include-protected")

    home.run("undo", "--last", project_root_of(role), "--yes")

    after = file_texts(role)
    for name in ("MEMORY.md", "knowledge.md", "ward-findings.md"):
        assert after[name] == before[name]
    assert all(PASSWORD not in text for name, text in after.items() if name.startswith("archive/"))


def test_the_service_reports_secrets_on_disk(home: Home, role: Path) -> None:
    from tests.support import running_daemon

    (role / "ward-findings.md").unlink()
    before = file_texts(role)

    def warned() -> list[str]:
        return [w["text"] for w in home.json("status")["warnings"] if w["code"] == "secrets-on-disk"]

    with running_daemon(home):
        home.run("add", project_root_of(role))
        until(lambda: bool(warned()), "the warning")
        (said,) = warned()
        assert "7 places" in said
        assert PASSWORD not in said
        assert file_texts(role) == before
        home.echod("scrub", project_root_of(role), "--include-protected")
        until(lambda: not warned(), "the end of the warning")


def test_a_secret_in_a_replaced_file_is_found_and_goes_with_it(home: Home, role: Path) -> None:
    home.run("add", project_root_of(role))
    home.run("consolidate", project_root_of(role))
    private = role.parent / ".echod"
    assert any(PASSWORD in path.read_text() for path in private.iterdir())

    listed = home.echod("scrub", project_root_of(role), "--dry-run")
    cleaned = home.echod("scrub", project_root_of(role), "--include-protected")

    assert ".echod/" in listed.stdout
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert not private.exists()
    assert all(
        PASSWORD.encode() not in path.read_bytes() for path in project_root_of(role).rglob("*") if path.is_file()
    )
