"""A new version of a pack under the user's edits, and the manifest that matches a history of changes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.packs.elevation import UpgradeResult, upgrade_pack
from echod.memory.packs.manifest import (
    ExpectedManifest,
    ManifestChange,
    PackManifest,
    compose_manifest,
    compose_manifest_change,
    expected_manifest,
    read_manifest_changes,
)

MINE = "## Notes \u2014 mine (2026-11-01)\n**Source**: user:remember\n- my own\n"


def pack_text(version: str, day: str, **bodies: str) -> str:
    entries = (
        f"## Etched \u2014 Kit: {title} ({day})\n\n**Source**: `doc-pack:kit@{version}`\n**Domain**: backend\n\n{body}\n"
        for title, body in bodies.items()
    )
    return "# Kit Doc Pack\n\n" + "\n".join(entries)


def read(text: str) -> Document:
    document = parse(text.encode())
    assert isinstance(document, Document)
    return document


OLD = pack_text("1.0.0", "2026-01-01", first="- one\n- two\n- three", second="- old", gone="- withdrawn")
NEW = pack_text("1.1.0", "2026-06-01", first="- one\n- two\n- THREE", second="- old", third="- new")


def upgrade(base: str | None, visible: str, new: str = NEW) -> UpgradeResult:
    found = upgrade_pack(None if base is None else read(base), read(visible), read(new), "kit")
    assert isinstance(found, UpgradeResult)
    return found


def test_an_untouched_pack_becomes_the_new_one() -> None:
    found = upgrade(OLD, OLD)

    assert found.data.decode() == NEW
    assert (found.edited, found.deleted, found.overridden) == ((), (), ())


def test_an_edit_stays_beside_new_text_in_the_same_entry() -> None:
    found = upgrade(OLD, OLD.replace("- one\n", "- one, and mine\n"))

    text = found.data.decode()
    assert "- one, and mine\n- two\n- THREE" in text
    assert found.edited == ("Kit: first",)
    assert text.count("Kit: first") == 1
    assert "1.0.0" not in text


def test_of_two_edits_of_a_line_the_users_wins_and_it_is_reported() -> None:
    found = upgrade(OLD, OLD.replace("- three", "- mine"))

    assert "- mine" in found.data.decode()
    assert "- THREE" not in found.data.decode()
    assert found.overridden == ("Kit: first",)


def test_added_entries_stay_and_removed_ones_stay_removed() -> None:
    start = OLD.index("## Etched \u2014 Kit: second")
    visible = OLD[:start] + OLD[OLD.index("## Etched \u2014 Kit: gone") :] + "\n" + MINE

    found = upgrade(OLD, visible)

    assert found.edited == ("mine",)
    assert found.deleted == ("Kit: second",)
    assert "Kit: second" not in found.data.decode()
    assert MINE in found.data.decode()
    assert "Kit: third" in found.data.decode()


def test_a_withdrawn_entry_is_removed_unless_the_user_edited_it() -> None:
    assert "withdrawn" not in upgrade(OLD, OLD).data.decode()

    found = upgrade(OLD, OLD.replace("- withdrawn", "- withdrawn, still true"))

    assert "- withdrawn, still true" in found.data.decode()
    assert found.edited == ("Kit: gone",)


def test_with_an_unknown_base_every_entry_that_is_not_the_packs_stays() -> None:
    found = upgrade(None, OLD.replace("- old", "- older") + "\n" + MINE)

    assert found.data.decode().startswith(NEW.rstrip())
    assert MINE in found.data.decode()
    assert found.edited == ("mine",)


@given(st.lists(st.sampled_from(["- one\n", "- two\n", "- three", "- old", "- withdrawn"]), unique=True))
def test_no_edit_of_the_user_is_lost(lines: list[str]) -> None:
    visible = OLD
    for line in lines:
        visible = visible.replace(line, line.replace("- ", "- mine ", 1))

    found = upgrade(OLD, visible)

    text = found.data.decode()
    assert all(line.replace("- ", "- mine ", 1).strip() in text for line in lines)
    assert upgrade(NEW, text).data == found.data, "doing it again changes nothing"
    assert upgrade(OLD, text).data == found.data, "nor does it after a crash that lost only the manifest"


# The manifest that belongs to it


@dataclass(frozen=True)
class ManifestTexts:
    one: str = compose_manifest(PackManifest("kit", "1.0.0", "2026-01-01", None, "1.0.0")).decode()
    two: str = compose_manifest(PackManifest("kit", "2.0.0", "2026-06-01", None, "2.0.0")).decode()
    foreign: str = compose_manifest(PackManifest("kit", "9.0.0", "2026-09-01", None, "9.0.0")).decode()
    two_checked: str = compose_manifest(
        PackManifest("kit", "2.0.0", "2026-06-01", None, "2.0.0", checked_at="2026-10-01")
    ).decode()


T = ManifestTexts()
INSTALL, UPDATE, REMOVE = (None, T.one), (T.one, T.two), (T.two, None)


def steps(*changes: tuple[str | None, str | None], undone: int = 0) -> list[ManifestChange]:
    """Changes, the newest first; a number of the newest were undone."""
    return [
        ManifestChange(before, after, in_effect=number >= undone)
        for number, (before, after) in enumerate(reversed(list(changes)))
    ]


@pytest.mark.parametrize(
    ("done", "present", "has_file", "due"),
    [
        (steps(INSTALL), None, True, ExpectedManifest(T.one)),
        (steps(INSTALL), T.one, True, None),
        (steps(INSTALL, UPDATE), T.one, True, ExpectedManifest(T.two)),
        (steps(INSTALL, UPDATE, undone=1), T.two, True, ExpectedManifest(T.one)),
        (steps(INSTALL, UPDATE, undone=1), T.two_checked, True, ExpectedManifest(T.one)),
        (steps(INSTALL, UPDATE), T.two_checked, True, None),
        (steps(INSTALL, undone=1), T.one, False, ExpectedManifest(None)),
        (steps(INSTALL, UPDATE, REMOVE), T.two, False, ExpectedManifest(None)),
        (steps(INSTALL, UPDATE, REMOVE, undone=1), None, True, ExpectedManifest(T.two)),
        (steps(INSTALL, (T.two, None), undone=1), None, True, ExpectedManifest(T.two)),
        (steps(INSTALL, (T.two, T.foreign), undone=1), T.foreign, True, ExpectedManifest(T.two)),
        (steps(INSTALL, (T.two, T.foreign), (T.foreign, None), undone=2), None, True, ExpectedManifest(T.two)),
        (steps(INSTALL, UPDATE), T.foreign, True, None),
        (steps(INSTALL), None, False, None),
        (steps(INSTALL, undone=1), T.one, True, None),
        ([], T.one, True, None),
    ],
    ids=[
        "killed before the manifest of an install",
        "nothing to put right",
        "killed before the manifest of an update",
        "an update that was undone",
        "checked since, and then undone",
        "checked since",
        "an install that was undone",
        "killed before the manifest of a removal went",
        "a removal that was undone",
        "a removal that was undone, of a manifest that had changed by other means",
        "the same with an update",
        "the same with both, one after the other",
        "another program installed another version since",
        "somebody deleted all of it",
        "somebody put the file there again",
        "nothing was ever done here",
    ],
)
def test_the_manifest_follows_the_history_of_the_pack(
    done: list[ManifestChange], present: str | None, has_file: bool, due: ExpectedManifest | None
) -> None:
    assert expected_manifest("kit", done, present, has_file=has_file) == due


def test_the_lines_that_changes_leave_are_read_again_and_others_are_passed_over() -> None:
    data = (
        compose_manifest_change(1, None, T.one.encode())
        + b'{"job": "x"}\n\xff\nnull\n'
        + compose_manifest_change(2, T.one.encode(), None)
    )

    assert read_manifest_changes(data) == {1: (None, T.one), 2: (T.one, None)}
