"""A registry of doc packs and the global store, in which anything may lie: looking ends, and shows and changes nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from echod.errors import EchodError
from echod.packs.check import take_inventory
from echod.packs.manifests import STEPS, agree
from tests.hostile.conftest import SECRET_OUTSIDE, inventory
from tests.hostile.test_places import SHAPES
from tests.packs.conftest import Shelf, shelf, team

__all__ = ["shelf", "team"]
PLACES = ("team/registry.json", "team/kit/MEMORY.md", "manifests/kit.json", "doc-packs/kit/MEMORY.md", "steps")


@pytest.fixture
def kit(shelf: Shelf) -> Shelf:
    """A pack that is installed, in an older version than the registry has."""
    shelf.team.publish("kit", "1.0.0", "a fact")
    shelf.put("kit")
    shelf.team.publish("kit", "1.1.0", "another fact")
    return shelf


def place(kit: Shelf, name: str) -> Path:
    if name.startswith("team/"):
        return kit.team.root.parent / name
    return kit.room.role("kit").path / STEPS if name == "steps" else kit.room.stores[0].root / name


def look(kit: Shelf) -> str:
    """All that is said of the packs, and of what must agree with them."""
    try:
        found = take_inventory(kit.room, kit.room.installed(), time.time(), 90)
        return repr((found, agree(kit.engine, kit.room.home)))
    except EchodError as error:
        return str(error)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PLACES)
def test_a_look_ends_and_leaves_what_lies_there(kit: Shelf, name: str, shape: str) -> None:
    path = place(kit, name)
    path.unlink()
    SHAPES[shape](path)
    before = inventory(path.parent)[path.name]

    look(kit)

    assert inventory(path.parent)[path.name] == before or name == "manifests/kit.json"


@pytest.mark.parametrize("name", PLACES)
def test_a_private_file_elsewhere_is_neither_shown_nor_written(kit: Shelf, name: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text(SECRET_OUTSIDE)
    path = place(kit, name)
    path.unlink()
    path.symlink_to(precious)

    said = look(kit)

    assert SECRET_OUTSIDE.strip() not in said
    assert precious.read_text() == SECRET_OUTSIDE
