"""Names that agents and repositories choose never become a path outside their directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from echod.store import layout
from echod.store.layout import Role, Store
from tests.hostile.conftest import Target, snapshot_tree
from tests.support import finding_text

NOT_ROLES = [
    "..evil",
    "-rf",
    "--force",
    "a b",
    "a;rm",
    "a\nb",
    "r\u00f4le",
    "a.b",
    "$HOME",
    "%2e%2e",
    "a\x1b[31m",
    "x" * 129,
]
NOT_AGENTS = ["-rf", "--config=x", "..", ".hidden", "a\nb", "a;b", "\u202egnp", "x" * 201]


def test_a_directory_with_an_odd_name_is_no_role(target: Target) -> None:
    leading_dash = {"-rf", "--force"}  # unusual, but harmless: it is only used relative to an open directory
    store = target.root / ".rune/echoes"
    for name in NOT_ROLES:
        (store / name).mkdir()
        (store / name / "ward-findings.md").write_text(finding_text("Timeouts are missing"))
    before = {name: snapshot_tree(store / name) for name in NOT_ROLES}

    roles = {role.name for role in layout.find_roles(Store(target.root.resolve(), store.resolve()))}
    target.run_once()

    assert roles - {"reviewer"} <= leading_dash
    for name in set(NOT_ROLES) - leading_dash:
        assert snapshot_tree(store / name) == before[name]
    assert not any("\x1b" in line for line in target.home.run("projects"))


def test_a_findings_file_with_an_odd_name_is_left_where_it_is(target: Target) -> None:
    names = [f"{agent}-findings.md" for agent in NOT_AGENTS] + ["-findings.md"]
    for name in names:
        (target.role / name).write_text(finding_text("Timeouts are missing"))
    before = snapshot_tree(target.root)

    target.run_once()

    assert snapshot_tree(target.root) == before


@pytest.mark.parametrize("name", ["../outside", "..", ".", "", "a/b", "/etc", "a\0b", "x" * 256, "-", "a\\..\\b"])
def test_only_plain_names_are_role_names(name: str) -> None:
    assert layout.ROLE_NAME.fullmatch(name) is None or name == "-"


def test_a_name_as_long_as_the_file_system_allows_does_not_stop_the_others(target: Target) -> None:
    longest = "x" * (255 - len("-findings.md"))
    (target.role / f"{longest}-findings.md").write_text(finding_text("Never read"))
    target.findings("a" * 200, finding_text("Timeouts are missing"))

    output = target.run_once()

    assert "Timeouts are missing" in target.memory.read_text()
    assert "1 added" in output
    assert (target.role / f"{longest}-findings.md").exists()


def test_a_role_is_opened_below_its_store_only(target: Target) -> None:
    from echod.store.errors import RefusedError, StoreError
    from echod.store.role import open_role_directory

    store = Store(target.root.resolve(), target.root.resolve() / ".rune/echoes")
    (target.root / "tmp").mkdir()
    for name in ("../../tmp", "..", "reviewer/../../.."):
        with pytest.raises((StoreError, RefusedError)), open_role_directory(Role(store, name)):
            pytest.fail(f"{name} was opened")


@pytest.mark.parametrize(
    "path",
    ["../x.md", "reviewer/../x.md", "reviewer/../../x.md", "/etc/passwd", "other/x.md", "reviewer/.hidden", "x.md"],
)
def test_a_change_outside_of_its_role_is_refused(target: Target, path: str) -> None:
    from echod.store.errors import RefusedError
    from echod.store.role import open_role_directory

    store = Store(target.root.resolve(), target.root.resolve() / ".rune/echoes")
    before = snapshot_tree(target.root.parent)
    with (
        open_role_directory(Role(store, "reviewer")) as ground,
        pytest.raises(RefusedError, match="is not in the role"),
    ):
        ground.resolve(path)
    assert snapshot_tree(target.root.parent) == before


def test_bytes_that_are_no_text_in_a_name_do_no_harm(target: Target) -> None:
    odd = os.fsencode(target.role) + b"/w\xffrd-findings.md"
    with Path(os.fsdecode(odd)).open("w") as file:
        file.write(finding_text("Never read"))
    target.findings()

    assert "1 added" in target.run_once()
    assert Path(os.fsdecode(odd)).exists()
