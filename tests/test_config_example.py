"""`config.example.toml` is a document of the settings, so it must say exactly what they say."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from echod.settings.loader import SettingsModel

EXAMPLE = Path(__file__).parents[1] / "config.example.toml"


def described(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from described(field.annotation, f"{name}.")
        else:
            yield prefix + name, field.description or ""


def test_the_example_shows_every_setting_with_its_default() -> None:
    shown = tomllib.loads(re.sub(r"(?m)^#(?=\w+ = )", "", EXAMPLE.read_text()))

    assert shown == SettingsModel().model_dump(mode="json")


def test_the_example_describes_every_setting_in_its_own_words() -> None:
    text = " ".join(EXAMPLE.read_text().replace("\n# ", " ").split())

    for name, description in described(SettingsModel):
        key = name.rpartition(".")[2]
        assert f" {description} #{key} = " in text, name


def test_the_example_changes_nothing_when_copied_as_it_is(tmp_path: Path) -> None:
    assert not any(tomllib.loads(EXAMPLE.read_text()).values()), "only empty tables"
