"""`echod --version` identifies the source that it was installed from."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import echod
from echod.cli.root import version_text
from echod.store.git import read_commit


class FakeDistribution:
    def __init__(self, record: object) -> None:
        self.record = record

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self.record is None else json.dumps(self.record)


@pytest.fixture
def outside_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echod, "__file__", str(tmp_path / "echod" / "__init__.py"))


@pytest.mark.usefixtures("outside_of_a_checkout")
@pytest.mark.parametrize("record", [None, {}, {"dir_info": {}}, {"vcs_info": {"commit_id": 7}}, {"vcs_info": []}, []])
def test_a_released_version_is_only_a_number(monkeypatch: pytest.MonkeyPatch, record: object) -> None:
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: FakeDistribution(record))

    assert version_text() == echod.__version__


@pytest.mark.usefixtures("outside_of_a_checkout")
def test_an_installation_from_a_repository_names_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"url": "ssh://example.org/echod", "vcs_info": {"vcs": "git", "commit_id": "ab" * 20}}
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: FakeDistribution(record))

    assert version_text() == f"{echod.__version__} (commit ababababab)"


def test_the_commit_of_a_checkout_is_read_without_git(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    assert read_commit(tmp_path) is None
    git("init", "-q")
    assert read_commit(tmp_path) is None
    git("commit", "-q", "--allow-empty", "-m", "one")
    assert read_commit(tmp_path) == git("rev-parse", "HEAD")
    git("pack-refs", "--all")
    assert read_commit(tmp_path) == git("rev-parse", "HEAD")
    git("checkout", "-q", "--detach")
    assert read_commit(tmp_path) == git("rev-parse", "HEAD")
