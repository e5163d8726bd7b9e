"""Doc packs and the global memory, used as a user does: real commands, a real service, a separate home."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from tests.life.files import MEMORY_HEADER, TODAY, learning_text, observation_text
from tests.packs.conftest import TeamRegistry
from tests.support import Home, make_project, running_daemon, until

OWN_NOTE = f"\n## Notes \u2014 mine ({TODAY})\n**Source**: user:remember\n- my own\n"


class GlobalStore:
    """Return the global store of a home."""

    def __init__(self, home: Home) -> None:
        self.root = home.root / "claude/echoes/global"
        self.memory = self.root / "MEMORY.md"

    def pack(self, stack: str) -> Path:
        return self.root / "doc-packs" / stack / "MEMORY.md"

    def manifest(self, stack: str) -> Path:
        return self.root / "manifests" / f"{stack}.json"

    def manifest_values(self, stack: str) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.manifest(stack).read_text())
        return values

    def change_manifest(self, stack: str, **changed: str) -> None:
        self.manifest(stack).write_text(json.dumps(self.manifest_values(stack) | changed))

    def tree(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.root)): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}


@pytest.fixture
def global_store(home: Home) -> GlobalStore:
    return GlobalStore(home)


@pytest.fixture
def team(home: Home) -> TeamRegistry:
    root = home.root / "team"
    root.mkdir()
    config = home.root / "config.toml"
    config.write_text(f'[packs]\nregistries = ["{root}"]\n')
    return TeamRegistry(root)


@pytest.fixture
def teamed(home: Home, team: TeamRegistry) -> Home:
    return Home(home.root, {"ECHOD_CONFIG": str(home.root / "config.toml")})


def days_ago(days: int) -> str:
    return (date.today() - timedelta(days=days)).isoformat()  # noqa: DTZ011  the local day, as the product's own


def warning_codes(home: Home) -> set[str]:
    return {warning["code"] for warning in home.json("status")["warnings"]}


def test_a_pack_is_listed_installed_shown_and_removed_again(home: Home, global_store: GlobalStore) -> None:
    listed = home.json("packs", "list")["packs"]
    assert [(p["name"], p["installed"], p["stale"]) for p in listed if p["name"] == "fastapi"] == [
        ("fastapi", False, None)
    ]
    assert len(listed) == 6

    home.run("packs", "install", "fastapi", "--dry-run")
    assert not global_store.root.exists()
    assert "v1.0.0" in home.run("packs", "install", "fastapi")
    before = global_store.tree()
    assert "already" in home.run("packs", "install", "fastapi")
    assert global_store.tree() == before

    told = global_store.manifest_values("fastapi")
    assert {"name", "version", "installed_at", "last_updated", "source_version", "domains", "sha256"} <= set(told)
    assert (global_store.root / ".global-echo-dirty").exists()
    lines = home.run("packs", "list").splitlines()
    assert any("fastapi" in line and f"installed (v1.0.0, {told['installed_at'][:10]})" in line for line in lines)
    assert any("nextjs" in line and "not installed" in line for line in lines)
    assert "installed 0 days ago" in home.run("packs", "status")
    said = home.run("audit")
    assert "4 entries" in said
    assert "backend, testing" in said

    asked = home.echod("packs", "remove", "fastapi")
    assert (asked.returncode, global_store.tree()) == (2, before)
    home.run("packs", "remove", "fastapi", "--yes")
    assert not global_store.pack("fastapi").exists()
    assert not global_store.manifest("fastapi").exists()
    home.run("undo", "--last", "--yes")
    assert global_store.tree()["doc-packs/fastapi/MEMORY.md"] == before["doc-packs/fastapi/MEMORY.md"]
    assert global_store.manifest_values("fastapi") == told


def test_an_invalid_or_unknown_name_is_refused_before_anything_is_changed(
    home: Home, global_store: GlobalStore
) -> None:
    for command, name, code in (("install", "../../x", 2), ("remove", "1st", 2), ("install", "nowhere", 2)):
        assert home.echod("packs", command, name).returncode == code
    update = home.echod("packs", "update", "fastapi")

    assert update.returncode == 1
    assert "echod packs install fastapi" in update.stderr
    assert not global_store.root.exists()


def test_an_update_from_a_teams_registry_keeps_edits_and_reports_it(
    teamed: Home, team: TeamRegistry, global_store: GlobalStore
) -> None:
    team.publish("kit", "1.9.0", "one", "two")
    teamed.run("packs", "install", "kit")
    edited = global_store.pack("kit").read_text().replace("- one", "- one, and mine") + OWN_NOTE
    global_store.pack("kit").write_text(edited)
    team.publish("kit", "1.10.0", "one", "TWO")

    shown = teamed.json("packs", "status")["packs"][0]
    assert (shown["edited"], shown["offer"], shown["available"]) == (True, "version", "1.10.0")
    said = " ".join(teamed.run("packs", "update", "kit").split())

    assert "v1.9.0 to v1.10.0" in said
    assert 'Your edits were kept: "Kit: part 1", "mine"' in said
    text = global_store.pack("kit").read_text()
    assert "- one, and mine" in text
    assert "- TWO" in text
    assert "up to date" in teamed.run("packs", "update")
    teamed.run("undo", "--last", "--yes")
    assert global_store.pack("kit").read_text() == edited
    assert global_store.manifest_values("kit")["version"] == "1.9.0"


def test_an_update_of_the_version_alone_is_reported_and_can_be_undone(
    teamed: Home, team: TeamRegistry, global_store: GlobalStore
) -> None:
    text = team.publish("kit", "1.0.0")
    teamed.run("packs", "install", "kit")
    registry = team.root / "registry.json"
    registry.write_text(registry.read_text().replace('"1.0.0", "last', '"1.1.0", "last'))

    said = " ".join(teamed.run("packs", "update", "kit").split())

    assert "v1.0.0 to v1.1.0, the text stays the same" in said
    assert "echod undo 2" in said
    assert global_store.manifest_values("kit")["version"] == "1.1.0"
    assert "the manifest of the pack" in teamed.run("undo", "2", "--dry-run")
    teamed.run("undo", "2", "--yes")
    assert (global_store.manifest_values("kit")["version"], global_store.pack("kit").read_text()) == ("1.0.0", text)
    teamed.run("undo", "1", "--yes")
    assert not global_store.manifest("kit").exists()


def test_a_workflow_in_a_project_and_a_short_lock_stop_no_pack_command(
    home: Home, global_store: GlobalStore, tmp_path: Path
) -> None:
    home.run("workflow", "begin", "a-test", "--project", make_project(tmp_path / "p"), "--ttl", "5")
    lock = global_store.root / ".lock"
    lock.mkdir(parents=True)
    waits = subprocess.Popen([sys.executable, "-m", "echod", "packs", "install", "fastapi"], env=home.environ)
    until((home.state / "echod.db").exists, "the command at work")
    lock.rmdir()

    assert waits.wait(30) == 0
    assert global_store.pack("fastapi").exists()


def test_work_that_the_settings_forbid_is_not_done(home: Home, global_store: GlobalStore) -> None:
    result = home.echod("packs", "install", "fastapi", ECHOD_MODE="report")

    assert result.returncode == 1
    assert "report" in result.stderr
    assert not global_store.pack("fastapi").exists()


def test_broken_manifests_are_reported_and_the_rest_works(home: Home, global_store: GlobalStore) -> None:
    home.run("packs", "install", "fastapi")
    global_store.manifest("nextjs").write_text("{")
    global_store.manifest("sqlalchemy").write_text('{"name": "sqlalchemy", "version": "1.0.0", "schema": 99}')

    report = home.json("packs", "status")

    assert [pack["name"] for pack in report["packs"]] == ["fastapi"]
    assert len(report["problems"]) == 2
    home.run("packs", "update")
    assert home.echod("packs", "install", "sqlalchemy").returncode == 1
    assert global_store.manifest("nextjs").read_text() == "{"


@pytest.mark.slow
def test_the_status_of_the_service_turns_to_stale_when_a_manifest_ages_and_back_after_an_update(
    teamed: Home, team: TeamRegistry, global_store: GlobalStore
) -> None:
    team.publish("kit", "1.0.0")
    teamed.run("packs", "install", "kit")
    teamed.run("packs", "install", "fastapi")

    with running_daemon(teamed):
        until(lambda: len(teamed.json("status")["packs"]) == 2, "the packs in the status")
        assert not {code for code in warning_codes(teamed) if code.startswith("packs")}

        global_store.change_manifest(
            "kit", installed_at=f"{days_ago(91)}T00:00:00.000+00:00", last_updated=days_ago(10)
        )
        until(lambda: "packs-stale" in warning_codes(teamed), "the stale warning")
        status = teamed.json("status")
        assert status["health"] == "degraded"
        assert {pack["name"]: pack["stale"] for pack in status["packs"]} == {"kit": True, "fastapi": False}
        assert "stale (> 90 days)" in teamed.run("packs", "status")

        team.publish("kit", "1.1.0", last_updated=days_ago(1))
        teamed.run("packs", "update", "kit")
        until(lambda: "packs-stale" not in warning_codes(teamed), "the warning that cleared itself")
        assert teamed.json("status")["health"] == "healthy"

        global_store.manifest("fastapi").write_text("{")
        until(lambda: "packs-unreadable" in warning_codes(teamed), "the broken manifest in the status")


def test_without_a_service_the_status_inspects_packs_itself_and_exactly_the_limit_is_fresh(
    home: Home, global_store: GlobalStore
) -> None:
    home.run("packs", "install", "fastapi")

    for days, stale in ((90, False), (91, True)):
        global_store.change_manifest("fastapi", installed_at=days_ago(days), last_updated=days_ago(days))
        assert ("packs-stale" in warning_codes(home)) is stale

    home.run("packs", "update")
    assert "packs-stale" not in warning_codes(home)


@pytest.mark.parametrize("in_its_place", ["a link to nowhere", "a file"])
def test_an_unreadable_global_store_is_reported_and_a_missing_one_is_not(home: Home, in_its_place: str) -> None:
    assert "packs-unreadable" not in warning_codes(home)

    above = home.root / "claude/echoes"
    above.parent.mkdir(exist_ok=True)
    if in_its_place == "a file":
        above.write_text("")
    else:
        above.symlink_to(home.root / "nowhere")

    assert "packs-unreadable" in warning_codes(home)


def test_a_project_may_say_when_packs_are_stale(home: Home, global_store: GlobalStore, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/talisman.yml").write_text("echoes:\n  global:\n    staleness_days: 30\n")
    home.run("packs", "install", "fastapi")
    global_store.change_manifest("fastapi", installed_at=days_ago(31), last_updated=days_ago(31))
    assert home.json("packs", "status")["packs"][0]["stale"] is False

    home.run("add", root)

    assert "packs-stale" in warning_codes(home)


def test_a_crash_before_the_manifest_is_repaired_by_the_service(home: Home, global_store: GlobalStore) -> None:
    home.run("packs", "install", "fastapi")
    manifest = global_store.manifest("fastapi").read_bytes()
    global_store.manifest("fastapi").unlink()

    with running_daemon(home):
        until(global_store.manifest("fastapi").exists, "the manifest")

    assert global_store.manifest("fastapi").read_bytes() == manifest


class TestElevate:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = make_project(tmp_path / "shop", "reviewer")
        secret = 'The key is api_key = "sk-' + 'proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD".'
        text = (
            MEMORY_HEADER
            + learning_text("limits")
            + learning_text("keys").replace("What was learnt", secret)
            + observation_text("a review")
        )
        (root / ".rune/echoes/reviewer/MEMORY.md").write_text(text)
        return root

    def entry(self, root: Path, title: str) -> str:
        document = parse((root / ".rune/echoes/reviewer/MEMORY.md").read_bytes())
        assert isinstance(document, Document)
        named = zip(entry_ids("reviewer", document), document.blocks, strict=True)
        return next(identity for identity, block in named if identity and block.entry and title in block.entry.title)

    def test_an_entry_is_copied_for_all_projects_once(self, home: Home, root: Path, global_store: GlobalStore) -> None:
        entry = self.entry(root, "limits")
        before = (root / ".rune/echoes/reviewer/MEMORY.md").read_bytes()
        assert "elevated:shop@reviewer" in home.run("elevate", entry, root, "--domain", "backend", "--dry-run")
        assert not global_store.memory.exists()

        home.run("elevate", entry[:6], root, "--domain", "backend")

        again = home.echod("elevate", entry[:6], root, "--domain", "backend")
        assert again.returncode == 0
        assert "already" in again.stdout
        assert global_store.memory.read_text().count("elevated:shop@reviewer") == 1
        assert (root / ".rune/echoes/reviewer/MEMORY.md").read_bytes() == before
        (audited,) = home.json("audit")["elevated"]
        assert (audited["project"], audited["role"], audited["domain"]) == ("shop", "reviewer", "backend")
        home.run("undo", "--last", "--yes")
        assert not global_store.memory.exists()

    def test_an_entry_of_the_global_memory_is_shown_forgotten_and_restored(
        self, home: Home, root: Path, global_store: GlobalStore
    ) -> None:
        for title in ("limits", "keys"):
            home.run("elevate", self.entry(root, title), root, "--domain", "backend")
        before = global_store.memory.read_bytes()
        roles, entries = (home.json("show", "--global")[name] for name in ("roles", "entries"))
        assert [(role["name"], role["lines"] > 0, role["limit"]) for role in roles] == [("", True, None)]
        entry = entries[0]["id"]
        assert "limits" in home.run("show", entry, "--global")
        assert "limits" in home.run("forget", entry, "--global", "--dry-run")
        home.run("workflow", "begin", "a-test", "--project", root)

        home.run("forget", entry, "--global", "--yes")

        assert b"limits" not in global_store.memory.read_bytes()
        refused = home.echod("forget", entry, "--global", "--yes")
        assert f"echod restore {entry} --global" in " ".join(refused.stderr.split())
        home.run("restore", entry, "--global")
        assert global_store.memory.read_bytes().count(b"limits") == before.count(b"limits")
        assert home.echod("show", entry, root, "--global").returncode == 2
        assert home.echod("show", entry).returncode == 2

    def test_an_entry_of_a_pack_that_the_user_forgot_stays_out_after_an_update(
        self, teamed: Home, team: TeamRegistry, global_store: GlobalStore
    ) -> None:
        team.publish("web", "1.0.0", "one", "two")
        teamed.run("packs", "install", "web")
        (gone, *_) = teamed.json("show", "web", "--global")["entries"]

        teamed.run("forget", gone["id"], "--global", "--yes")

        team.publish("web", "1.1.0", "one", "TWO")
        teamed.run("packs", "update", "web")
        assert gone["id"] not in [entry["id"] for entry in teamed.json("show", "web", "--global")["entries"]]
        teamed.run("restore", gone["id"], "--global")
        text = global_store.pack("web").read_text()
        assert (gone["title"] in text, "TWO" in text) == (True, True)

    def test_secrets_are_not_copied(self, home: Home, root: Path, global_store: GlobalStore) -> None:
        said = home.run("elevate", self.entry(root, "keys"), root, "--domain", "backend")

        assert "secret" in said
        assert "sk-proj" not in global_store.memory.read_text()
        assert "sk-proj" not in "".join(path.read_text() for path in home.state.rglob("*.log"))

    def test_an_observation_and_an_invalid_domain_are_refused(self, home: Home, root: Path) -> None:
        assert home.echod("elevate", self.entry(root, "a review"), root, "--domain", "backend").returncode == 1
        assert home.echod("elevate", self.entry(root, "limits"), root, "--domain", "cooking").returncode == 2

    def test_the_domain_is_asked_for_at_a_terminal_and_required_from_a_script(
        self, home: Home, root: Path, global_store: GlobalStore
    ) -> None:
        entry = self.entry(root, "limits")
        assert home.echod("elevate", entry, root).returncode == 2

        assert run_at_terminal(home, ["elevate", entry, str(root)], "cooking\ntesting\n") == 0

        assert "**Domain**: testing" in global_store.memory.read_text()

    def test_the_audit_lists_entries_of_unknown_origin(self, home: Home, global_store: GlobalStore) -> None:
        home.run("packs", "install", "fastapi")
        with global_store.pack("fastapi").open("a") as file:
            file.write(OWN_NOTE)
        global_store.memory.write_text(f"# Global Memory\n{OWN_NOTE.replace('mine', 'stray')}")

        report = home.json("audit")

        assert [(pack["name"], pack["added"]) for pack in report["packs"]] == [("fastapi", 1)]
        assert {entry["title"] for entry in report["unknown"]} == {"mine", "stray"}


def run_at_terminal(home: Home, arguments: list[str], typed: str) -> int:
    """Run a command at a terminal with typed input. Return its exit code."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "echod", *arguments]
    process = subprocess.Popen(command, env=home.environ, cwd=home.root, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, typed.encode())
    try:
        while process.poll() is None:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    os.read(ours, 65_536)
                except OSError:
                    break
        return process.wait(30)
    finally:
        os.close(ours)
