"""The service files themselves: rendered from the real templates and read back by their real readers."""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.service.base import MANAGED_MARK, ManagedFile, ServiceConfig, ServiceError, build_service_config
from echod.service.launchd import render_plist
from echod.service.paths import read_template
from echod.service.systemd import render_unit

ODD_CONFIG = ServiceConfig(
    ('/home/me/my "tools"/100% $HOME/echod', "run"),
    (("CLAUDE_CONFIG_DIR", "/home/me/a b%n\\c"), ("ECHOD_MODE", 'say "hi" $x')),
)


# Templates


def test_the_templates_are_found_in_a_checkout() -> None:
    assert read_template("systemd", "echod.service").startswith("# Managed by echod")
    assert "<plist" in read_template("launchd", "local.echod.plist")


def test_the_templates_are_found_in_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "site-packages" / "echod"
    (installed / "_share" / "systemd").mkdir(parents=True)
    (installed / "_share" / "systemd" / "echod.service").write_text("installed")
    monkeypatch.setattr(resources, "files", lambda _: installed)

    assert read_template("systemd", "echod.service") == "installed"


def test_an_installation_without_templates_is_an_error() -> None:
    with pytest.raises(ServiceError, match="Install echod again"):
        read_template("systemd", "other.service")


# systemd


def test_the_unit_contains_the_required_settings() -> None:
    lines = read_template("systemd", "echod.service").splitlines()

    for needed in (
        "Type=notify",
        "NotifyAccess=main",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "WatchdogSec=90",
        "Restart=on-failure",
        "RestartPreventExitStatus=78",
        "KillMode=mixed",
        "WantedBy=default.target",
    ):
        assert needed in lines
    assert not [
        line for line in lines if line.startswith(("ProtectSystem", "ProtectHome", "Condition", "StateDirectory"))
    ]


def test_the_rendered_unit_differs_from_the_template_in_command_and_environment_only() -> None:
    before = read_template("systemd", "echod.service").splitlines()
    after = render_unit("\n".join(before), ODD_CONFIG).decode().splitlines()

    assert [line for line in after if line not in before] == [
        r'Environment="CLAUDE_CONFIG_DIR=/home/me/a b%%n\\c"',
        r'Environment="ECHOD_MODE=say \"hi\" $x"',
        r'ExecStart="/home/me/my \"tools\"/100%% $$HOME/echod" "run"',
    ]
    assert [line for line in before if line not in after] == ["ExecStart=%h/.local/bin/echod run"]


def test_a_damaged_template_is_refused() -> None:
    with pytest.raises(ServiceError):
        render_unit("[Service]\n", ODD_CONFIG)


@pytest.mark.parametrize("which", ["the template itself", "rendered"])
def test_systemd_itself_reports_no_problem_with_the_unit(tmp_path: Path, which: str) -> None:
    """systemd-analyze warns on standard error and exits with 0, so the output must be empty."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    home = tmp_path / "home me"
    (home / ".local" / "bin").mkdir(parents=True)
    program = home / ".local" / "bin" / "echod"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "echod.service"
    text = read_template("systemd", "echod.service")
    unit.write_bytes(
        text.encode()
        if which != "rendered"
        else render_unit(text, ServiceConfig((str(program), "run"), ODD_CONFIG.environment))
    )

    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(home), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": os.environ["PATH"]},
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")


# launchd


def test_the_agent_has_the_keys_and_types_that_launchd_knows() -> None:
    agent = plistlib.loads(
        render_plist(read_template("launchd", "local.echod.plist"), ODD_CONFIG, Path("/state/launchd.err"))
    )

    assert agent == {
        "Label": "local.echod",
        "ProgramArguments": ['/home/me/my "tools"/100% $HOME/echod', "run"],
        "EnvironmentVariables": {
            "PATH": agent["EnvironmentVariables"]["PATH"],
            "CLAUDE_CONFIG_DIR": "/home/me/a b%n\\c",
            "ECHOD_MODE": 'say "hi" $x',
        },
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": 60,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "LowPriorityBackgroundIO": True,
        "Nice": 10,
        "Umask": 0o077,
        "StandardErrorPath": "/state/launchd.err",
    }
    assert "~" not in repr(agent)


def test_the_rendered_agent_has_our_mark_and_is_xml() -> None:
    agent = render_plist(read_template("launchd", "local.echod.plist"), ODD_CONFIG, Path("/x"))

    assert MANAGED_MARK in agent
    assert agent.startswith(b"<?xml")


def test_the_template_mentions_that_macos_is_untested() -> None:
    assert "Not yet tested on macOS" in read_template("launchd", "local.echod.plist")


@pytest.mark.parametrize("text", ["", "<plist", "not xml", "<plist><dict><key>a</key></dict></plist>"])
def test_a_damaged_agent_template_is_refused(text: str) -> None:
    with pytest.raises(ServiceError):
        render_plist(text, ODD_CONFIG, Path("/x"))


# The recorded command and environment


def _make_python(tmp_path: Path, *, script: bool) -> Path:
    (tmp_path / "bin").mkdir()
    if script:
        (tmp_path / "bin" / "echod").touch(0o755)
    return tmp_path / "bin" / "python3"


def test_the_command_is_the_script_beside_the_interpreter(tmp_path: Path) -> None:
    assert build_service_config(_make_python(tmp_path, script=True), {}).command == (
        str(tmp_path / "bin" / "echod"),
        "run",
    )


def test_without_a_script_the_module_is_run(tmp_path: Path) -> None:
    python = _make_python(tmp_path, script=False)

    assert build_service_config(python, {}).command == (str(python), "-m", "echod", "run")


def test_variables_that_decide_locations_are_recorded_and_no_others(tmp_path: Path) -> None:
    environ = {
        "CLAUDE_CONFIG_DIR": "/c",
        "ECHOD_STATE_DIR": "/s",
        "ECHOD_MODE": "",
        "XDG_STATE_HOME": "/x",
        "XDG_RUNTIME_DIR": "/run/user/1",
        "HOME": "/h",
        "API_TOKEN": "secret",
    }

    found = build_service_config(_make_python(tmp_path, script=True), environ).environment

    assert found == (("CLAUDE_CONFIG_DIR", "/c"), ("ECHOD_STATE_DIR", "/s"), ("XDG_STATE_HOME", "/x"))


def test_a_value_that_no_service_file_can_contain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="ECHOD_MODE"):
        build_service_config(_make_python(tmp_path, script=True), {"ECHOD_MODE": "a\nExecStartPre=/bin/evil"})


@settings(max_examples=80)
@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=30))
def test_every_value_is_one_quoted_word_of_the_unit(value: str) -> None:
    unit = render_unit("ExecStart=x", ServiceConfig(("/bin/echod",), (("ECHOD_X", value),))).decode()

    [line] = [line for line in unit.splitlines() if line.startswith("Environment=")]
    # A shell reads double quotes alike, but for the dollar sign and the backquote, which shlex does not expand.
    [word] = shlex.split(line.removeprefix("Environment="))
    assert word.replace("%%", "%") == f"ECHOD_X={value}"


# Files among those of others


def test_a_file_is_written_whole_and_only_if_it_changes(tmp_path: Path) -> None:
    file = ManagedFile(tmp_path / "deep" / "echod.service")

    assert file.write(b"one")
    assert not file.write(b"one")
    assert file.write(b"two")
    assert [path.read_bytes() for path in (tmp_path / "deep").iterdir()] == [b"two"]
    assert file.remove()
    assert not file.remove()


def test_a_file_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    directory = tmp_path / "deep"
    directory.symlink_to(tmp_path / "nowhere" / "at all")

    with pytest.raises(ServiceError, match=r"deep/echod\.service cannot be written"):
        ManagedFile(directory / "echod.service").write(b"x")
