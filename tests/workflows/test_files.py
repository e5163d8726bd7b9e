"""Names in a directory: the same result for small and large directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from echod.workflows import files


@pytest.mark.parametrize("small", [0, 1 << 30], ids=["asked for each name", "listed"])
def test_the_names_that_are_there_are_found_in_the_order_of_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(files, "_SMALL_DIRECTORY", small)
    (tmp_path / "b").touch()
    (tmp_path / "a").symlink_to("nowhere")
    (tmp_path / "other").touch()

    assert files.existing_names(tmp_path, ["b", "c", "a", ""]) == ("b", "a")
    assert files.existing_names(tmp_path / "missing", ["a"]) == ()
    (tmp_path / "link").symlink_to(tmp_path)
    assert files.existing_names(tmp_path / "link", ["b"]) == ()
