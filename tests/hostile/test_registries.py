"""A registry of doc packs and the global store with any content: reading ends, and shows and changes nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from echod.errors import EchodError
from echod.jobs.packs import MANIFEST_CHANGES_FILE, sync_manifests
from echod.packs.installed import check_packs
from tests.hostile.conftest import SECRET_OUTSIDE, snapshot_tree
from tests.hostile.test_places import SHAPES
from tests.packs.conftest import PackStore, pack_store, team

pytestmark = pytest.mark.slow

__all__ = ["pack_store", "team"]
PLACES = ("team/registry.json", "team/kit/MEMORY.md", "manifests/kit.json", "doc-packs/kit/MEMORY.md", "steps")


@pytest.fixture
def kit(pack_store: PackStore) -> PackStore:
    """An installed pack in an older version than the registry has."""
    pack_store.team.publish("kit", "1.0.0", "a fact")
    pack_store.install("kit")
    pack_store.team.publish("kit", "1.1.0", "another fact")
    return pack_store


def path_of(kit: PackStore, name: str) -> Path:
    if name.startswith("team/"):
        return kit.team.root.parent / name
    return (
        kit.locations.pack_role("kit").path / MANIFEST_CHANGES_FILE
        if name == "steps"
        else kit.locations.stores[0].root / name
    )


def inspect_packs(kit: PackStore) -> str:
    """Return all output about the packs and their manifests."""
    try:
        found = check_packs(kit.locations, kit.locations.read_installed(), time.time(), 90)
        return repr((found, sync_manifests(kit.engine, kit.locations.claude_home)))
    except EchodError as error:
        return str(error)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PLACES)
def test_reading_ends_and_changes_nothing(kit: PackStore, name: str, shape: str) -> None:
    path = path_of(kit, name)
    path.unlink()
    SHAPES[shape](path)
    before = snapshot_tree(path.parent)[path.name]

    inspect_packs(kit)

    assert snapshot_tree(path.parent)[path.name] == before or name == "manifests/kit.json"


@pytest.mark.parametrize("name", PLACES)
def test_a_private_file_elsewhere_is_neither_shown_nor_written(kit: PackStore, name: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text(SECRET_OUTSIDE)
    path = path_of(kit, name)
    path.unlink()
    path.symlink_to(precious)

    output = inspect_packs(kit)

    assert SECRET_OUTSIDE.strip() not in output
    assert precious.read_text() == SECRET_OUTSIDE
