"""Installing, updating and removing in a real global store: edits stay, nothing is lost, the manifest is consistent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echod.jobs.base import JobBlocked, JobDone
from echod.jobs.packs import sync_manifests, write_manifest
from echod.memory.packs.manifest import PackManifest
from echod.packs.installed import UpdateStatus, manifest_path
from echod.store.errors import RefusedError
from echod.store.layout import DIRTY_MARKER, global_store
from tests.packs.conftest import PackStore, pack_text

MINE = "\n## Notes \u2014 mine (2026-11-01)\n**Source**: user:remember\n- my own\n"


def manifest(pack_store: PackStore, stack: str = "kit") -> Path:
    return manifest_path(pack_store.locations.claude_home, stack)


def installed_manifest(pack_store: PackStore, stack: str = "kit") -> PackManifest:
    found = pack_store.state(stack).installed.manifest
    assert found is not None
    return found


def archive(pack_store: PackStore, stack: str = "kit") -> str:
    return "".join(path.read_text() for path in (pack_store.locations.pack_role(stack).path / "archive").rglob("*.md"))


def test_an_installed_pack_is_the_registrys_text_with_a_manifest_and_a_signal(pack_store: PackStore) -> None:
    text = pack_store.team.publish("kit", "1.0.0", domains=["backend"])

    assert pack_store.install("kit") == JobDone("installed the doc pack kit 1.0.0", changed=True)

    assert pack_store.memory("kit").read_text() == text
    assert (
        installed_manifest(pack_store).version,
        installed_manifest(pack_store).source_version,
        installed_manifest(pack_store).last_updated,
    ) == (
        "1.0.0",
        "1.0.0",
        "2026-11-01",
    )
    assert installed_manifest(pack_store).domains == ("backend",)
    assert (global_store(pack_store.locations.claude_home).root / DIRTY_MARKER).exists()
    state = pack_store.state("kit")
    assert (state.edited, state.update_status, state.stale) == (False, UpdateStatus.NO_UPDATE, False)


def test_installing_again_changes_not_one_file(pack_store: PackStore) -> None:
    pack_store.team.publish("kit", "1.0.0")
    pack_store.install("kit")
    before = {path: path.stat().st_mtime_ns for path in pack_store.locations.claude_home.rglob("*") if path.is_file()}

    done = pack_store.install("kit")

    assert done == JobDone("nothing newer was found", changed=False)
    assert {
        path: path.stat().st_mtime_ns for path in pack_store.locations.claude_home.rglob("*") if path.is_file()
    } == before


def test_an_update_keeps_edits_and_a_second_one_changes_nothing(pack_store: PackStore) -> None:
    pack_store.team.publish("kit", "1.9.0", "one", "two")
    pack_store.install("kit")
    edited = pack_store.memory("kit").read_text().replace("- one", "- one, and mine") + MINE
    pack_store.memory("kit").write_text(edited)
    pack_store.team.publish("kit", "1.10.0", "one", "TWO", "three")
    assert (pack_store.state("kit").edited, pack_store.state("kit").update_status) == (True, UpdateStatus.NEW_VERSION)

    pack_store.install("kit")

    text = pack_store.memory("kit").read_text()
    assert "- one, and mine" in text
    assert "- TWO" in text
    assert "- three" in text
    assert MINE.strip() in text
    assert edited in archive(pack_store)
    assert installed_manifest(pack_store).version == "1.10.0"
    assert pack_store.state("kit").update_status is UpdateStatus.NO_UPDATE
    assert pack_store.install("kit") == JobDone("nothing newer was found", changed=False)


def test_another_text_under_the_same_version_is_noticed_and_a_lower_version_is_never_taken(
    pack_store: PackStore,
) -> None:
    pack_store.team.publish("kit", "1.0.0", "one")
    pack_store.install("kit")

    pack_store.team.publish("kit", "1.0.0", "one, corrected")
    assert pack_store.state("kit").update_status is UpdateStatus.NEW_TEXT
    pack_store.install("kit")
    assert "one, corrected" in pack_store.memory("kit").read_text()

    pack_store.team.publish("kit", "0.9.0", "older")
    assert pack_store.state("kit").update_status is UpdateStatus.OLDER_VERSION
    pack_store.install("kit")
    assert "older" not in pack_store.memory("kit").read_text()
    assert installed_manifest(pack_store).version == "1.0.0"


def test_a_pack_that_another_program_installed_is_brought_up_to_date(pack_store: PackStore) -> None:
    pack_store.team.publish("kit", "1.1.0", "new")
    old = pack_text("kit", "1.0.0", "old", "gone")
    pack_store.memory("kit").parent.mkdir(parents=True)
    pack_store.memory("kit").write_text(old + MINE)
    write_manifest(
        pack_store.locations.claude_home, "kit", json.dumps({"name": "kit", "version": "1.0.0", "mark": 7}).encode()
    )
    assert pack_store.state("kit").edited is None

    pack_store.install("kit")

    text = pack_store.memory("kit").read_text()
    assert "- new" in text
    assert "- gone" not in text
    assert MINE.strip() in text
    assert old in archive(pack_store)
    assert json.loads(manifest(pack_store).read_text())["mark"] == 7


def test_a_file_that_cannot_be_understood_is_left_alone(pack_store: PackStore) -> None:
    pack_store.team.publish("kit", "1.0.0")
    pack_store.install("kit")
    torn = "<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs\n"
    pack_store.memory("kit").write_text(torn)
    pack_store.team.publish("kit", "1.1.0")

    assert isinstance(pack_store.install("kit"), JobBlocked)

    assert pack_store.memory("kit").read_text() == torn
    assert installed_manifest(pack_store).version == "1.0.0"


def test_an_aged_pack_for_which_there_is_nothing_newer_is_fresh_once_that_was_checked(pack_store: PackStore) -> None:
    pack_store.team.publish("kit", "1.0.0")
    pack_store.install("kit")
    aged = json.loads(manifest(pack_store).read_text()) | {"installed_at": "2020-01-01T00:00:00Z"}
    manifest(pack_store).write_text(json.dumps(aged))
    assert pack_store.state("kit").stale is True

    pack_store.install("kit")

    assert pack_store.state("kit").stale is False
    assert installed_manifest(pack_store).installed_at == "2020-01-01T00:00:00Z"


def test_a_removed_pack_is_in_its_archive_and_undo_brings_back_file_and_manifest(pack_store: PackStore) -> None:
    pack_store.team.publish("kit", "1.0.0")
    pack_store.install("kit")
    pack_store.memory("kit").write_text(pack_store.memory("kit").read_text() + MINE)
    text, told = pack_store.memory("kit").read_bytes(), manifest(pack_store).read_bytes()

    pack_store.remove("kit")

    assert not pack_store.memory("kit").exists()
    assert not manifest(pack_store).exists()
    assert text.decode() in archive(pack_store)
    pack_store.engine.undo(2, by_job=12)
    sync_manifests(pack_store.engine, pack_store.locations.claude_home)
    assert pack_store.memory("kit").read_bytes() == text
    assert manifest(pack_store).read_bytes() == told


def test_undo_of_an_update_gives_the_edited_file_and_its_manifest_and_can_be_undone_too(pack_store: PackStore) -> None:
    pack_store.team.publish("kit", "1.0.0", "one")
    pack_store.install("kit")
    pack_store.memory("kit").write_text(edited := pack_store.memory("kit").read_text() + MINE)
    pack_store.team.publish("kit", "2.0.0", "ONE")
    pack_store.install("kit")
    newer = pack_store.memory("kit").read_text()

    for number, (text, version) in enumerate([(edited, "1.0.0"), (newer, "2.0.0"), (edited, "1.0.0")], 3):
        pack_store.engine.undo(number - 1, by_job=number)
        sync_manifests(pack_store.engine, pack_store.locations.claude_home)

        assert pack_store.memory("kit").read_text() == text
        assert installed_manifest(pack_store).version == version


@pytest.mark.parametrize("last", ["update", "remove"])
@pytest.mark.parametrize("changed_by", ["another program", "a look for something newer"])
def test_undo_gives_the_manifest_as_it_was_just_before_whatever_had_changed_it(
    pack_store: PackStore, changed_by: str, last: str
) -> None:
    pack_store.team.publish("kit", "1.0.0", "one")
    pack_store.install("kit")
    changed = {"mark": 7} if changed_by == "another program" else {"installed_at": "2020-01-01T00:00:00Z"}
    manifest(pack_store).write_text(json.dumps(json.loads(manifest(pack_store).read_text()) | changed))
    if changed_by == "a look for something newer":
        pack_store.install("kit")
        assert installed_manifest(pack_store).checked_at is not None
    before = manifest(pack_store).read_bytes()
    pack_store.team.publish("kit", "2.0.0" if last == "update" else "1.0.0", "two")
    pack_store.install("kit") if last == "update" else pack_store.remove("kit")
    assert not manifest(pack_store).exists() or manifest(pack_store).read_bytes() != before

    pack_store.engine.undo(pack_store.jobs, by_job=12)
    sync_manifests(pack_store.engine, pack_store.locations.claude_home)

    assert manifest(pack_store).read_bytes() == before


class TestAnUpdateThatChangesTheManifestAlone:
    """Such an update is a step like any other: whatever is undone around it, file and manifest change together."""

    @pytest.fixture
    def version_bumped(self, pack_store: PackStore) -> PackStore:
        pack_store.team.publish("kit", "1.0.0", "one")
        pack_store.install("kit")
        registry = pack_store.team.root / "registry.json"
        registry.write_text(registry.read_text().replace("1.0.0", "1.1.0"))
        text = pack_store.memory("kit").read_bytes()
        assert pack_store.install("kit") == JobDone("updated the doc pack kit from 1.0.0 to 1.1.0", changed=True)
        assert (pack_store.memory("kit").read_bytes(), installed_manifest(pack_store).version) == (text, "1.1.0")
        return pack_store

    def installed_version(self, pack_store: PackStore) -> str | None:
        assert manifest(pack_store).exists() is pack_store.memory("kit").exists()
        return installed_manifest(pack_store).version if manifest(pack_store).exists() else None

    @pytest.mark.parametrize(
        ("undone", "left"),
        [
            ([1], None),
            ([2], "1.0.0"),
            ([1, 2], None),
            ([2, 1], None),
            ([1, 3], "1.1.0"),
            ([2, 3], "1.1.0"),
            ([1, 2, 3], "1.0.0"),
        ],
        ids=str,
    )
    def test_can_be_undone_and_so_can_the_installation_below_it(
        self, version_bumped: PackStore, undone: list[int], left: str | None
    ) -> None:
        for by, number in enumerate(undone, 3):
            version_bumped.engine.undo(number, by_job=by)
            sync_manifests(version_bumped.engine, version_bumped.locations.claude_home)

        assert self.installed_version(version_bumped) == left
        assert sync_manifests(version_bumped.engine, version_bumped.locations.claude_home) == ()

    def test_is_known_to_the_undo_of_a_removal(self, version_bumped: PackStore) -> None:
        version_bumped.remove("kit")
        assert self.installed_version(version_bumped) is None

        version_bumped.engine.undo(3, by_job=4)
        sync_manifests(version_bumped.engine, version_bumped.locations.claude_home)

        assert self.installed_version(version_bumped) == "1.1.0"

    def test_is_put_right_after_a_crash_before_the_manifest(self, version_bumped: PackStore) -> None:
        after = manifest(version_bumped).read_bytes()
        version_bumped.engine.undo(2, by_job=3)
        sync_manifests(version_bumped.engine, version_bumped.locations.claude_home)
        before = manifest(version_bumped).read_bytes()
        version_bumped.engine.undo(3, by_job=4)  # as if the process had died before it wrote the new one
        assert manifest(version_bumped).read_bytes() == before

        assert sync_manifests(version_bumped.engine, version_bumped.locations.claude_home) == ("kit",)

        assert manifest(version_bumped).read_bytes() == after


def test_a_pack_whose_file_was_deleted_by_hand_keeps_its_manifest_though_an_earlier_installation_was_undone(
    pack_store: PackStore,
) -> None:
    pack_store.team.publish("kit", "1.0.0")
    pack_store.install("kit")
    pack_store.engine.undo(1, by_job=2)
    sync_manifests(pack_store.engine, pack_store.locations.claude_home)
    pack_store.jobs = 2
    pack_store.install("kit")
    pack_store.memory("kit").unlink()

    assert sync_manifests(pack_store.engine, pack_store.locations.claude_home) == ()

    assert installed_manifest(pack_store).version == "1.0.0"


@pytest.mark.parametrize("what", ["install", "update", "remove"])
def test_a_crash_between_file_and_manifest_is_put_right(pack_store: PackStore, what: str) -> None:
    pack_store.team.publish("kit", "1.0.0", "one")
    if what != "install":
        pack_store.install("kit")
    before = manifest(pack_store).read_bytes() if what != "install" else None
    pack_store.team.publish("kit", "2.0.0" if what == "update" else "1.0.0", "two")
    pack_store.remove("kit") if what == "remove" else pack_store.install("kit")
    after = manifest(pack_store).read_bytes() if what != "remove" else None
    write_manifest(
        pack_store.locations.claude_home, "kit", before
    )  # as if the process had died before it wrote the new one

    assert sync_manifests(pack_store.engine, pack_store.locations.claude_home) == ("kit",)

    assert (manifest(pack_store).read_bytes() if manifest(pack_store).exists() else None) == after
    assert sync_manifests(pack_store.engine, pack_store.locations.claude_home) == ()


def test_a_manifest_of_another_program_is_not_repaired(pack_store: PackStore) -> None:
    pack_store.team.publish("kit", "1.0.0")
    pack_store.install("kit")
    foreign = json.dumps({"name": "kit", "version": "3.0.0"}).encode()
    write_manifest(pack_store.locations.claude_home, "kit", foreign)

    assert sync_manifests(pack_store.engine, pack_store.locations.claude_home) == ()

    assert manifest(pack_store).read_bytes() == foreign


def test_a_manifest_is_written_through_no_symlink(pack_store: PackStore, tmp_path: Path) -> None:
    manifest(pack_store).parent.mkdir(parents=True)
    (outside := tmp_path / "outside").write_text("theirs")
    manifest(pack_store).symlink_to(outside)

    with pytest.raises(RefusedError):
        write_manifest(pack_store.locations.claude_home, "kit", b"{}")

    assert outside.read_text() == "theirs"


def test_one_pack_that_is_broken_keeps_no_other_from_being_seen(pack_store: PackStore, tmp_path: Path) -> None:
    for stack in ("kit", "corrupt", "future", "linked", "headless", "nofile"):
        pack_store.team.publish(stack, "1.0.0")
        pack_store.install(stack)
    manifest(pack_store, "corrupt").write_text("{")
    manifest(pack_store, "future").write_text('{"name": "future", "version": "1.0.0", "schema": 9}')
    manifest(pack_store, "headless").unlink()
    pack_store.memory("nofile").unlink()
    pack_store.locations.pack_role("linked").path.rename(tmp_path / "elsewhere")
    pack_store.locations.pack_role("linked").path.symlink_to(tmp_path / "elsewhere")
    (manifest(pack_store).parent / "no name.json").write_text("{}")
    (manifest(pack_store).parent / ".hidden.json").write_text("{}")
    (pack_store.locations.pack_role("kit").path.parent / "README").write_text("no pack")

    holding = pack_store.locations.read_installed()

    told = {pack.stack: pack.problem for pack in holding.packs}
    assert told.pop("kit") is None
    assert set(told) == {"corrupt", "future", "linked", "headless", "nofile"}
    assert all(told.values())
    assert {pack.stack for pack in holding.packs if pack.blocked} == {"corrupt", "future", "linked"}
    assert len(holding.problems) == 1
