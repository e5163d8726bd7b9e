from __future__ import annotations

from pathlib import Path

import pytest

from echod.errors import ConfigurationError, ExitCode
from echod.memory.policy_model import DEFAULT_POLICY
from echod.settings import loader, schema
from echod.settings.schema import Settings, unknown_variable_warnings


def load(tmp_path: Path, text: str, **environ: str) -> Settings:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return loader.load_settings(file, environ)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    settings = loader.load_settings(tmp_path / "absent.toml", {})

    assert settings.quiet_seconds == 30
    assert settings.mode == "maintain"


def test_variables_win_over_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, "quiet_seconds = 5\nreconcile_minutes = 3", ECHOD_QUIET_SECONDS="0.5")

    assert settings.quiet_seconds == 0.5
    assert settings.reconcile_minutes == 3


def test_a_nested_variable_changes_only_its_key(tmp_path: Path) -> None:
    assert load(tmp_path, "", ECHOD_GATE__SESSIONS="false").gate.sessions is False


def test_a_list_in_a_variable_is_json(tmp_path: Path) -> None:
    assert load(tmp_path, "", ECHOD_PROJECTS='["~/src/*"]').projects == ("~/src/*",)
    with pytest.raises(ConfigurationError, match=r"ECHOD_PROJECTS"):
        load(tmp_path, "", ECHOD_PROJECTS="~/src/*")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("\n\nquiet_secnds = 3", r"config.toml:3: there is no setting quiet_secnds; did you mean quiet_seconds"),
        ("[gate]\nsesions = true", r"config.toml:2: there is no setting gate.sesions; did you mean gate.sessions"),
        ("mode = 'sometimes'", r"config.toml:1: mode must be 'maintain' or 'report'"),
        ("# x\nquiet_seconds = -1", r"config.toml:2: quiet_seconds must be at least 0, not -1"),
        ("quiet_seconds = nan", r"config.toml:1: quiet_seconds must be "),
        ("quiet_seconds =", r"config.toml:1: this is not TOML: invalid value"),
        (
            "mode = report",
            r'config.toml:1: this is not TOML: invalid value. Words are quoted, like mode = "report"',
        ),
        ("mode = 'report'\nmode = 'report'\n\n", r"config.toml:2: this is not TOML: cannot overwrite a value\."),
        ("zzz = 1", r"there is no setting zzz\.$"),
        ("\nnoise_share = 0.3", r"config.toml:2: there is no setting noise_share; did you mean policy.noise_share\?"),
        (
            "[gate]\nmax_attempts = 3",
            r"config.toml:2: .* gate.max_attempts; did you mean max_attempts, above the first",
        ),
        ("\n[polcy]\nnoise_share = 0.3", r"config.toml:2: there is no setting polcy; did you mean \[policy\]\?"),
        ("[policy]\nquiett = 3", r"config.toml:2: there is no setting policy.quiett\.$"),
        ("[policy]\nquiet_second = 3", r"policy.quiet_second; did you mean quiet_seconds, above the first \[table\]\?"),
        ("quiett = 3", r"config.toml:1: there is no setting quiett\.$"),
        ("[hooks]\nteams = []", r"there is no setting hooks.teams; did you mean observe.teams\?"),
        ("[gate]\npolicy = 3", r"there is no setting gate.policy\.$"),
        ("\nprojects = ['src/*']", r"config.toml:2: projects: 'src/\*' is not absolute; write it from / or ~ on"),
        ("[packs]\nregistries = ['team']", r"config.toml:2: packs.registries: 'team' is not absolute"),
    ],
)
def test_a_wrong_setting_is_named_with_file_and_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        load(tmp_path, text)

    assert caught.value.exit_code is ExitCode.CONFIGURATION


def test_every_wrong_setting_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, "quiet_secnds = 3\nmax_attempts = 0")

    assert len(str(caught.value).splitlines()) == 2


def test_a_wrong_variable_is_named_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^ECHOD_QUIET_SECONDS: quiet_seconds must be a number"):
        load(tmp_path, "quiet_seconds = 3", ECHOD_QUIET_SECONDS="soon")


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    absent = tmp_path / "absent.toml"

    with pytest.raises(ConfigurationError, match="does not exist"):
        loader.load_settings(absent, {"ECHOD_CONFIG": str(absent)})


@pytest.mark.parametrize(
    "make", [lambda p: p.mkdir(), lambda p: p.write_bytes(b"\xff\xfe")], ids=["directory", "not-utf8"]
)
def test_a_file_that_cannot_be_read_is_an_error_not_a_default(tmp_path: Path, make: object) -> None:
    file = tmp_path / "config.toml"
    assert callable(make)
    make(file)

    with pytest.raises(ConfigurationError, match="cannot be read"):
        loader.load_settings(file, {})


def test_unknown_variables_are_warnings_and_known_ones_are_not() -> None:
    environ = {
        "ECHOD_QUIET_SECNDS": "1",
        "ECHOD_GATE__SESSIONS": "1",
        "ECHOD_GATE__NOPE": "1",
        "ECHOD_STATE_DIR": "/x",
        "HOME": "/",
    }

    warnings = unknown_variable_warnings(environ)

    assert [w.split()[0] for w in warnings] == ["ECHOD_GATE__NOPE", "ECHOD_QUIET_SECNDS"]
    assert "did you mean ECHOD_QUIET_SECONDS" in warnings[1]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ECHOD_FOO", "."),
        ("ECHOD_HOOK", "; did you mean ECHOD_HOOKS?"),
        ("ECHOD_POLICY__QUIETT", "."),
        ("ECHOD_POLICY__QUIET_SECOND", "; did you mean ECHOD_QUIET_SECONDS?"),
        ("ECHOD_NOISE_SHARE", "; did you mean ECHOD_POLICY__NOISE_SHARE?"),
        ("ECHOD_POLICY_NOISE_SHARE", "; did you mean ECHOD_POLICY__NOISE_SHARE?"),
        ("ECHOD_STATEDIR", "; did you mean ECHOD_STATE_DIR?"),
        ("ECHOD_", "."),
    ],
)
def test_a_variable_is_taken_for_another_only_where_their_names_are_near(name: str, hint: str) -> None:
    assert unknown_variable_warnings({name: "1"}) == (f"{name} is not a setting of echod{hint}",)


class TestPolicy:
    def test_the_defaults_are_those_of_the_policies(self, tmp_path: Path) -> None:
        settings = load(tmp_path, "")

        assert settings.policy_settings(settings.memory_line_limit) == DEFAULT_POLICY

    def test_every_number_of_the_policies_can_be_set(self) -> None:
        keys = {declared.keys for declared in schema.declarations()}

        for name in DEFAULT_POLICY._fields:
            assert ("policy", name) in keys or (name,) in keys

    def test_a_number_arrives_where_it_counts(self, tmp_path: Path) -> None:
        settings = load(tmp_path, "[policy]\nobservations_days = 7", ECHOD_POLICY__NOISE_SHARE="0.5")

        policy = settings.policy_settings(400)
        assert (policy.observations_days, policy.noise_share, policy.memory_line_limit) == (7, 0.5, 400)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("recency_weight = 0.4", r"config.toml:1: policy: .*must add up to 1"),
            ("traced_days = 0", r"config.toml:2: policy.traced_days must be at least 1, not 0"),
            ("noise_share = 1.5", r"config.toml:2: policy.noise_share must be at most 1, not 1.5"),
            ("noise_shar = 0.1", r"there is no setting policy.noise_shar; did you mean policy.noise_share"),
        ],
    )
    def test_numbers_that_make_no_sense_are_refused(self, tmp_path: Path, text: str, sentence: str) -> None:
        with pytest.raises(ConfigurationError, match=sentence):
            load(tmp_path, f"[policy]\n{text}")
