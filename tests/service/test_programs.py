"""`doctor` runs the program that a service file names."""

from __future__ import annotations

import os
import plistlib
from dataclasses import replace
from pathlib import Path

import pytest

from echod.contract.commands import CheckResult
from echod.doctor.machine import DoctorContext, check_service_program, service_program
from echod.paths import paths_from_environment
from echod.service.base import ServiceConfig
from echod.service.paths import read_template
from echod.service.systemd import render_unit
from echod.settings.schema import Settings


@pytest.fixture
def context(tmp_path: Path) -> DoctorContext:
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return DoctorContext(
        paths=paths_from_environment(environ),
        settings=Settings(),
        environ=environ,
        platform="linux",
        python=tmp_path / "python",
        version="1.2.3",
        uid=os.getuid(),
        now=0,
        monotonic=0,
        mounts="",
    )


def install(tmp_path: Path, program: Path) -> None:
    unit = tmp_path / "config/systemd/user/echod.service"
    unit.parent.mkdir(parents=True)
    template = read_template("systemd", "echod.service")
    unit.write_bytes(render_unit(template, ServiceConfig((str(program), "run"), ())))


def make_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_program_of_this_version_passes_whatever_its_path_contains(context: DoctorContext, tmp_path: Path) -> None:
    install(tmp_path, make_program(tmp_path / '100% of $5 "x"/echod', '[ "$1" = --version ] && echo echod 1.2.3'))

    (check,) = check_service_program(context)

    assert check.result is CheckResult.OK, check.text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo echod 1.0.0", "is echod 1.0.0 and not echod 1.2.3"),
        ("echo hello", "is hello and not"),
        ("exit 3", "does not print its version"),
        ("true", "is nothing and not"),
    ],
)
def test_another_program_is_a_problem(context: DoctorContext, tmp_path: Path, text: str, reason: str) -> None:
    install(tmp_path, make_program(tmp_path / "bin/echod", text))

    (check,) = check_service_program(context)

    assert check.result is CheckResult.PROBLEM
    assert reason in check.text
    assert "echod service install" in check.fix


def test_a_program_that_is_gone_is_a_problem(context: DoctorContext, tmp_path: Path) -> None:
    install(tmp_path, tmp_path / "gone/echod")

    (check,) = check_service_program(context)

    assert check.result is CheckResult.PROBLEM
    assert "No such file" in check.text


def test_without_a_service_file_nothing_is_reported(context: DoctorContext) -> None:
    assert list(check_service_program(context)) == []
    assert list(check_service_program(replace(context, platform="win32"))) == []


def test_the_template_and_an_agent_name_their_programs() -> None:
    template = read_template("systemd", "echod.service").encode()
    agent = plistlib.dumps({"ProgramArguments": ["/opt/a b/echod", "run"]})

    assert service_program(template, "/home/me") == ("/home/me/.local/bin/echod",)
    assert service_program(agent, "") == ("/opt/a b/echod",)
    assert service_program(plistlib.dumps({}), "") is None
    assert service_program(b"[Unit]\n", "") is None
