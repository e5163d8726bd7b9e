"""`config.example.toml` documents the settings, so it must repeat their declarations exactly."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from echod.settings import schema
from echod.settings.schema import Settings

EXAMPLE = Path(__file__).parents[1] / "config.example.toml"


def test_the_example_shows_every_setting_with_its_default() -> None:
    shown = tomllib.loads(re.sub(r"(?m)^#(?=\w+ = )", "", EXAMPLE.read_text()))

    assert shown == schema.to_plain(Settings())


def test_the_example_describes_every_setting_in_its_own_words() -> None:
    text = " ".join(EXAMPLE.read_text().replace("\n# ", " ").split())

    for declared in schema.declarations():
        assert f" {declared.description} #{declared.keys[-1]} = " in text, declared.dotted


def test_the_example_changes_nothing_when_copied_as_it_is(tmp_path: Path) -> None:
    assert not any(tomllib.loads(EXAMPLE.read_text()).values()), "only empty tables"
