"""`echod verify` and the other commands show what became of evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evidence.conftest import LINES, History
from tests.support import Home

ENTRY = (
    "## Inscribed \u2014 Ten is seventy (2026-10-01)\n**Source**: `r1`\n**Evidence**: `src/app.py:10-12`\n\n- Text.\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_verify_search_explain_and_confirm_follow_the_lines(history: History, home: Home) -> None:
    home.root.mkdir()
    memory = history.root / ".rune/echoes/workers/MEMORY.md"
    memory.parent.mkdir(parents=True)
    memory.write_text(ENTRY)
    history.write("src/app.py", [*LINES[:9], "value_10 = compute(99, base=70)", *LINES[10:]])
    guilty = history.commit()

    (entry,) = home.json("verify", history.root)["entries"]
    assert entry["title"] == "Ten is seventy"
    assert entry["evidence"] == [{"cite": "src/app.py:10-12", "state": "changed", "at": "src/app.py:10-12"}]
    (result,) = home.json("search", "seventy", history.root)["results"]
    assert result["evidence"] == entry["evidence"]
    (explained,) = home.json("explain", entry["id"], history.root)["evidence"]
    assert explained["commit"] == guilty

    before = memory.read_text()
    home.run("verify", "--confirm", entry["id"], history.root, "--dry-run")
    assert memory.read_text() == before
    home.run("verify", "--confirm", entry["id"], history.root)
    assert "**Verified**: 20" in memory.read_text()
    ((confirmed,),) = [one["evidence"] for one in home.json("verify", history.root)["entries"]]
    assert confirmed["state"] == "valid"
