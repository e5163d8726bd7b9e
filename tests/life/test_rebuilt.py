"""After the loss of the database work continues, and no number is given to two jobs, because undo uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import Home, finding_text, make_project


@pytest.mark.parametrize("loss", ["deleted", "damaged"])
def test_undo_reverses_the_job_that_had_the_number_before_the_database_was_lost(
    home: Home, tmp_path: Path, loss: str
) -> None:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    (role / "ward-findings.md").write_text(finding_text("Timeouts are missing"))
    home.run("run", "--once", root)
    for file in home.state.glob("echod.db*"):
        file.unlink() if loss == "deleted" else file.write_bytes(b"no database" * 1000)
    (role / "seer-findings.md").write_text(finding_text("Money is in cents"))
    home.run("run", "--once", root)

    numbers = [job["job"] for job in home.json("log", root)["jobs"]]
    assert len(set(numbers)) == 2

    home.run("undo", min(numbers), root, "--yes")

    text = (role / "MEMORY.md").read_text()
    assert "Timeouts are missing" not in text
    assert "Money is in cents" in text


def test_pins_and_answers_survive_a_damaged_database_and_the_loss_is_reported(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing", layer="etched"))
    home.run("add", root)
    home.run("run", "--once", root)
    (entry,) = home.json("show", root)["entries"]
    (item,) = home.json("review", root)["items"]
    home.run("pin", entry["id"], root)
    home.run("review", "dismiss", item["id"])
    for file in home.state.glob("echod.db*"):
        file.write_bytes(b"no database" * 1000)

    home.run("run", "--once", root)

    assert home.json("explain", entry["id"], root)["pinned"]
    assert home.json("review", root)["items"] == []
    (warning,) = [one for one in home.json("status")["warnings"] if one["code"] == "database-copies"]
    assert "Your decisions were kept" in warning["text"]
