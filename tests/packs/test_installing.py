"""Installing, updating and taking away in a real global store: edits stay, nothing is lost, the manifest keeps up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echod.jobs.base import Blocked, Done
from echod.memory.packs.manifest import Manifest
from echod.packs.check import Offer
from echod.packs.installed import manifest_path
from echod.packs.manifests import agree, write_manifest
from echod.store.errors import Refused
from echod.store.layout import DIRTY, global_store
from tests.packs.conftest import Shelf, pack_text

MINE = "\n## Notes \u2014 mine (2026-11-01)\n**Source**: user:remember\n- my own\n"


def manifest(shelf: Shelf, stack: str = "kit") -> Path:
    return manifest_path(shelf.room.home, stack)


def known(shelf: Shelf, stack: str = "kit") -> Manifest:
    found = shelf.state(stack).installed.manifest
    assert found is not None
    return found


def archive(shelf: Shelf, stack: str = "kit") -> str:
    return "".join(path.read_text() for path in (shelf.room.role(stack).path / "archive").rglob("*.md"))


def test_an_installed_pack_is_the_registrys_text_with_a_manifest_and_a_signal(shelf: Shelf) -> None:
    text = shelf.team.publish("kit", "1.0.0", domains=["backend"])

    assert shelf.put("kit") == Done("installed the doc pack kit 1.0.0", changed=True)

    assert shelf.memory("kit").read_text() == text
    assert (known(shelf).version, known(shelf).source_version, known(shelf).last_updated) == (
        "1.0.0",
        "1.0.0",
        "2026-11-01",
    )
    assert known(shelf).domains == ("backend",)
    assert (global_store(shelf.room.home).root / DIRTY).exists()
    state = shelf.state("kit")
    assert (state.edited, state.offer, state.stale) == (False, Offer.NOTHING, False)


def test_installing_again_changes_not_one_file(shelf: Shelf) -> None:
    shelf.team.publish("kit", "1.0.0")
    shelf.put("kit")
    before = {path: path.stat().st_mtime_ns for path in shelf.room.home.rglob("*") if path.is_file()}

    done = shelf.put("kit")

    assert done == Done("nothing newer was found", changed=False)
    assert {path: path.stat().st_mtime_ns for path in shelf.room.home.rglob("*") if path.is_file()} == before


def test_an_update_keeps_edits_and_a_second_one_changes_nothing(shelf: Shelf) -> None:
    shelf.team.publish("kit", "1.9.0", "one", "two")
    shelf.put("kit")
    edited = shelf.memory("kit").read_text().replace("- one", "- one, and mine") + MINE
    shelf.memory("kit").write_text(edited)
    shelf.team.publish("kit", "1.10.0", "one", "TWO", "three")
    assert (shelf.state("kit").edited, shelf.state("kit").offer) == (True, Offer.VERSION)

    shelf.put("kit")

    text = shelf.memory("kit").read_text()
    assert "- one, and mine" in text
    assert "- TWO" in text
    assert "- three" in text
    assert MINE.strip() in text
    assert edited in archive(shelf)
    assert known(shelf).version == "1.10.0"
    assert shelf.state("kit").offer is Offer.NOTHING
    assert shelf.put("kit") == Done("nothing newer was found", changed=False)


def test_another_text_under_the_same_version_is_noticed_and_a_lower_version_is_never_taken(shelf: Shelf) -> None:
    shelf.team.publish("kit", "1.0.0", "one")
    shelf.put("kit")

    shelf.team.publish("kit", "1.0.0", "one, corrected")
    assert shelf.state("kit").offer is Offer.TEXT
    shelf.put("kit")
    assert "one, corrected" in shelf.memory("kit").read_text()

    shelf.team.publish("kit", "0.9.0", "older")
    assert shelf.state("kit").offer is Offer.OLDER
    shelf.put("kit")
    assert "older" not in shelf.memory("kit").read_text()
    assert known(shelf).version == "1.0.0"


def test_a_pack_that_another_program_installed_is_brought_up_to_date(shelf: Shelf) -> None:
    shelf.team.publish("kit", "1.1.0", "new")
    old = pack_text("kit", "1.0.0", "old", "gone")
    shelf.memory("kit").parent.mkdir(parents=True)
    shelf.memory("kit").write_text(old + MINE)
    write_manifest(shelf.room.home, "kit", json.dumps({"name": "kit", "version": "1.0.0", "mark": 7}).encode())
    assert shelf.state("kit").edited is None

    shelf.put("kit")

    text = shelf.memory("kit").read_text()
    assert "- new" in text
    assert "- gone" not in text
    assert MINE.strip() in text
    assert old in archive(shelf)
    assert json.loads(manifest(shelf).read_text())["mark"] == 7


def test_a_file_that_cannot_be_understood_is_left_alone(shelf: Shelf) -> None:
    shelf.team.publish("kit", "1.0.0")
    shelf.put("kit")
    torn = "<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs\n"
    shelf.memory("kit").write_text(torn)
    shelf.team.publish("kit", "1.1.0")

    assert isinstance(shelf.put("kit"), Blocked)

    assert shelf.memory("kit").read_text() == torn
    assert known(shelf).version == "1.0.0"


def test_an_aged_pack_for_which_there_is_nothing_newer_is_fresh_once_that_was_checked(shelf: Shelf) -> None:
    shelf.team.publish("kit", "1.0.0")
    shelf.put("kit")
    aged = json.loads(manifest(shelf).read_text()) | {"installed_at": "2020-01-01T00:00:00Z"}
    manifest(shelf).write_text(json.dumps(aged))
    assert shelf.state("kit").stale is True

    shelf.put("kit")

    assert shelf.state("kit").stale is False
    assert known(shelf).installed_at == "2020-01-01T00:00:00Z"


def test_a_removed_pack_is_in_its_archive_and_undo_brings_back_file_and_manifest(shelf: Shelf) -> None:
    shelf.team.publish("kit", "1.0.0")
    shelf.put("kit")
    shelf.memory("kit").write_text(shelf.memory("kit").read_text() + MINE)
    text, told = shelf.memory("kit").read_bytes(), manifest(shelf).read_bytes()

    shelf.take("kit")

    assert not shelf.memory("kit").exists()
    assert not manifest(shelf).exists()
    assert text.decode() in archive(shelf)
    shelf.engine.undo(2, by=12)
    agree(shelf.engine, shelf.room.home)
    assert shelf.memory("kit").read_bytes() == text
    assert manifest(shelf).read_bytes() == told


def test_undo_of_an_update_gives_the_edited_file_and_its_manifest_and_can_be_undone_too(shelf: Shelf) -> None:
    shelf.team.publish("kit", "1.0.0", "one")
    shelf.put("kit")
    shelf.memory("kit").write_text(edited := shelf.memory("kit").read_text() + MINE)
    shelf.team.publish("kit", "2.0.0", "ONE")
    shelf.put("kit")
    newer = shelf.memory("kit").read_text()

    for number, (text, version) in enumerate([(edited, "1.0.0"), (newer, "2.0.0"), (edited, "1.0.0")], 3):
        shelf.engine.undo(number - 1, by=number)
        agree(shelf.engine, shelf.room.home)

        assert shelf.memory("kit").read_text() == text
        assert known(shelf).version == version


@pytest.mark.parametrize("last", ["update", "remove"])
@pytest.mark.parametrize("changed_by", ["another program", "a look for something newer"])
def test_undo_gives_the_manifest_as_it_was_just_before_whatever_had_changed_it(
    shelf: Shelf, changed_by: str, last: str
) -> None:
    shelf.team.publish("kit", "1.0.0", "one")
    shelf.put("kit")
    changed = {"mark": 7} if changed_by == "another program" else {"installed_at": "2020-01-01T00:00:00Z"}
    manifest(shelf).write_text(json.dumps(json.loads(manifest(shelf).read_text()) | changed))
    if changed_by == "a look for something newer":
        shelf.put("kit")
        assert known(shelf).checked_at is not None
    before = manifest(shelf).read_bytes()
    shelf.team.publish("kit", "2.0.0" if last == "update" else "1.0.0", "two")
    shelf.put("kit") if last == "update" else shelf.take("kit")
    assert not manifest(shelf).exists() or manifest(shelf).read_bytes() != before

    shelf.engine.undo(shelf.jobs, by=12)
    agree(shelf.engine, shelf.room.home)

    assert manifest(shelf).read_bytes() == before


class TestAnUpdateThatChangesTheManifestAlone:
    """It is a step like any other: whatever is undone around it, file and manifest come and go together."""

    @pytest.fixture
    def bumped(self, shelf: Shelf) -> Shelf:
        shelf.team.publish("kit", "1.0.0", "one")
        shelf.put("kit")
        registry = shelf.team.root / "registry.json"
        registry.write_text(registry.read_text().replace("1.0.0", "1.1.0"))
        text = shelf.memory("kit").read_bytes()
        assert shelf.put("kit") == Done("updated the doc pack kit from 1.0.0 to 1.1.0", changed=True)
        assert (shelf.memory("kit").read_bytes(), known(shelf).version) == (text, "1.1.0")
        return shelf

    def version(self, shelf: Shelf) -> str | None:
        assert manifest(shelf).exists() is shelf.memory("kit").exists()
        return known(shelf).version if manifest(shelf).exists() else None

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
        self, bumped: Shelf, undone: list[int], left: str | None
    ) -> None:
        for by, number in enumerate(undone, 3):
            bumped.engine.undo(number, by=by)
            agree(bumped.engine, bumped.room.home)

        assert self.version(bumped) == left
        assert agree(bumped.engine, bumped.room.home) == ()

    def test_is_known_to_the_undo_of_a_removal(self, bumped: Shelf) -> None:
        bumped.take("kit")
        assert self.version(bumped) is None

        bumped.engine.undo(3, by=4)
        agree(bumped.engine, bumped.room.home)

        assert self.version(bumped) == "1.1.0"

    def test_is_put_right_after_a_crash_before_the_manifest(self, bumped: Shelf) -> None:
        after = manifest(bumped).read_bytes()
        bumped.engine.undo(2, by=3)
        agree(bumped.engine, bumped.room.home)
        before = manifest(bumped).read_bytes()
        bumped.engine.undo(3, by=4)  # as if the process had died before it wrote the new one
        assert manifest(bumped).read_bytes() == before

        assert agree(bumped.engine, bumped.room.home) == ("kit",)

        assert manifest(bumped).read_bytes() == after


def test_a_pack_whose_file_was_deleted_by_hand_keeps_its_manifest_though_an_earlier_installation_was_undone(
    shelf: Shelf,
) -> None:
    shelf.team.publish("kit", "1.0.0")
    shelf.put("kit")
    shelf.engine.undo(1, by=2)
    agree(shelf.engine, shelf.room.home)
    shelf.jobs = 2
    shelf.put("kit")
    shelf.memory("kit").unlink()

    assert agree(shelf.engine, shelf.room.home) == ()

    assert known(shelf).version == "1.0.0"


@pytest.mark.parametrize("what", ["install", "update", "remove"])
def test_a_crash_between_file_and_manifest_is_put_right(shelf: Shelf, what: str) -> None:
    shelf.team.publish("kit", "1.0.0", "one")
    if what != "install":
        shelf.put("kit")
    before = manifest(shelf).read_bytes() if what != "install" else None
    shelf.team.publish("kit", "2.0.0" if what == "update" else "1.0.0", "two")
    shelf.take("kit") if what == "remove" else shelf.put("kit")
    after = manifest(shelf).read_bytes() if what != "remove" else None
    write_manifest(shelf.room.home, "kit", before)  # as if the process had died before it wrote the new one

    assert agree(shelf.engine, shelf.room.home) == ("kit",)

    assert (manifest(shelf).read_bytes() if manifest(shelf).exists() else None) == after
    assert agree(shelf.engine, shelf.room.home) == ()


def test_what_another_program_wrote_since_is_not_put_right(shelf: Shelf) -> None:
    shelf.team.publish("kit", "1.0.0")
    shelf.put("kit")
    foreign = json.dumps({"name": "kit", "version": "3.0.0"}).encode()
    write_manifest(shelf.room.home, "kit", foreign)

    assert agree(shelf.engine, shelf.room.home) == ()

    assert manifest(shelf).read_bytes() == foreign


def test_a_manifest_is_written_through_no_symlink(shelf: Shelf, tmp_path: Path) -> None:
    manifest(shelf).parent.mkdir(parents=True)
    (outside := tmp_path / "outside").write_text("theirs")
    manifest(shelf).symlink_to(outside)

    with pytest.raises(Refused):
        write_manifest(shelf.room.home, "kit", b"{}")

    assert outside.read_text() == "theirs"


def test_one_pack_that_is_broken_keeps_no_other_from_being_seen(shelf: Shelf, tmp_path: Path) -> None:
    for stack in ("kit", "corrupt", "future", "linked", "headless", "nofile"):
        shelf.team.publish(stack, "1.0.0")
        shelf.put(stack)
    manifest(shelf, "corrupt").write_text("{")
    manifest(shelf, "future").write_text('{"name": "future", "version": "1.0.0", "schema": 9}')
    manifest(shelf, "headless").unlink()
    shelf.memory("nofile").unlink()
    shelf.room.role("linked").path.rename(tmp_path / "elsewhere")
    shelf.room.role("linked").path.symlink_to(tmp_path / "elsewhere")
    (manifest(shelf).parent / "no name.json").write_text("{}")
    (manifest(shelf).parent / ".hidden.json").write_text("{}")
    (shelf.room.role("kit").path.parent / "README").write_text("no pack")

    holding = shelf.room.installed()

    told = {pack.stack: pack.problem for pack in holding.packs}
    assert told.pop("kit") is None
    assert set(told) == {"corrupt", "future", "linked", "headless", "nofile"}
    assert all(told.values())
    assert {pack.stack for pack in holding.packs if pack.barred} == {"corrupt", "future", "linked"}
    assert len(holding.problems) == 1
