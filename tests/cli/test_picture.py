"""The picture in the README shows what the program prints now."""

from __future__ import annotations

from tests.cli.picture import PICTURE, draw, record


def test_the_picture_in_the_readme_is_current() -> None:
    assert PICTURE.read_text() == draw(record()), "draw it again: python -m tests.cli.picture > docs/before-after.svg"
