"""The path by which others call echod survives an upgrade, and a temporary environment is recognised."""

from __future__ import annotations

from pathlib import Path

import pytest

from echod.installation import program_command, temporary_runner
from echod.service.base import ServiceError, build_service_config


def make_program(directory: Path) -> Path:
    directory.mkdir(parents=True)
    (directory / "echod").touch(0o755)
    return directory / "python3"


def test_the_link_that_a_package_manager_keeps_is_preferred(tmp_path: Path) -> None:
    python = make_program(tmp_path / "tools/echod-memory/0.1.0/bin")
    link = tmp_path / ".local/bin/echod"
    link.parent.mkdir(parents=True)
    link.symlink_to(python.parent / "echod")

    assert program_command(python, {"HOME": str(tmp_path)}) == (str(link),)


@pytest.mark.parametrize("target", ["other/bin/echod", "missing/bin/echod"])
def test_a_link_to_another_program_is_not_used(tmp_path: Path, target: str) -> None:
    python = make_program(tmp_path / "tools/bin")
    make_program(tmp_path / "other/bin")
    link = tmp_path / ".local/bin/echod"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / target)

    assert program_command(python, {"HOME": str(tmp_path)}) == (str(python.parent / "echod"),)


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_home_the_script_beside_the_interpreter_is_used(tmp_path: Path, environ: dict[str, str]) -> None:
    python = make_program(tmp_path / "bin")

    assert program_command(python, environ) == (str(python.parent / "echod"),)


@pytest.mark.parametrize(
    ("python", "runner"),
    [
        ("/home/me/.cache/uv/archive-v0/x1/bin/python", "uvx"),
        ("/home/me/.cache/uv/environments-v2/echod-1/bin/python", "uvx"),
        ("/home/me/.cache/pipx/ab12/bin/python", "pipx run"),
        ("/Users/me/Library/Caches/pipx/ab12/bin/python", "pipx run"),
        ("/home/me/.local/pipx/.cache/ab12/bin/python", "pipx run"),
        ("/home/me/.local/share/uv/tools/echod-memory/bin/python", None),
        ("/home/me/.local/share/pipx/venvs/echod-memory/bin/python", None),
        ("/home/me/src/archive-v0/uv/bin/python", None),
    ],
)
def test_a_temporary_environment_is_recognised_by_its_directories(python: str, runner: str | None) -> None:
    assert temporary_runner(Path(python), {}) == runner


def test_a_moved_cache_of_uv_is_temporary_too() -> None:
    assert temporary_runner(Path("/big/uv-cache/x/bin/python"), {"UV_CACHE_DIR": "/big/uv-cache"}) == "uvx"


def test_no_service_is_installed_from_a_temporary_environment() -> None:
    with pytest.raises(ServiceError, match=r"temporary environment of uvx.*uv tool install"):
        build_service_config(Path("/home/me/.cache/uv/archive-v0/x1/bin/python"), {})
