"""A project's settings come with its repository. They are parsed where possible, and can only make echod do less."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from echod.projects.section import MAX_DEPTH
from echod.projects.settings import (
    MAX_SETTINGS_BYTES,
    ProjectSettings,
    ProjectSettingsCache,
    read_project_settings,
)

NOTHING = ProjectSettings()
AS_ROOT = os.geteuid() == 0


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    def put(text: str | bytes, name: str = ".rune/talisman.yml") -> Path:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    return put


def warning_of(project: Path) -> str:
    """Return the only warning about a file that gave the defaults."""
    read = read_project_settings(project)
    assert read.settings == NOTHING
    (warning,) = read.warnings
    return warning


class TestWhichFile:
    def test_a_project_without_a_file_has_the_defaults(self, tmp_path: Path) -> None:
        read = read_project_settings(tmp_path)

        assert (read.settings, read.file, read.warnings) == (NOTHING, None, ())
        assert read.settings.consolidate

    def test_the_first_that_exists_decides_alone(self, put: Callable[..., Path], tmp_path: Path) -> None:
        oldest = put("echoes: {memory_line_limit: 301, consolidate: false}", ".claude/rune-config.yml")
        assert read_project_settings(tmp_path).file == oldest
        older = put("echoes: {memory_line_limit: 302}", ".claude/talisman.yml")
        assert read_project_settings(tmp_path).settings == ProjectSettings(memory_line_limit=302)
        assert read_project_settings(tmp_path).file == older
        newest = put("echoes: {memory_line_limit: 303}", ".rune/talisman.yml")
        assert read_project_settings(tmp_path).settings == ProjectSettings(memory_line_limit=303)
        assert read_project_settings(tmp_path).file == newest

    def test_an_unusable_file_is_not_replaced_by_an_older_one(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("echoes: {memory_line_limit: 302}", ".claude/talisman.yml")
        put("echoes: [", ".rune/talisman.yml")

        assert ".rune/talisman.yml" in warning_of(tmp_path)


class TestValues:
    def test_all_keys_at_once(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put(
            "version: 3\nother: {consolidate: true}\necho: no\n"
            "echoes:\n  version_controlled: true\n  fts_enabled: true\n  consolidate: false\n  memory_line_limit: 250\n"
        )

        read = read_project_settings(tmp_path)

        assert read.settings == ProjectSettings(consolidate=False, memory_line_limit=250, version_controlled=True)
        assert read.warnings == ()

    @pytest.mark.parametrize("value", ["false", "False", "FALSE", "no", "off", '"false"', "'no'", "!!bool false", "n"])
    def test_an_explicit_no_wins(self, put: Callable[..., Path], tmp_path: Path, value: str) -> None:
        put(f"echoes:\n  consolidate: {value}\n  version_controlled: {value}\n")

        read = read_project_settings(tmp_path)

        assert read.settings == ProjectSettings(consolidate=False, version_controlled=False)
        assert read.warnings == ()

    def test_each_switch_is_its_own(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("echoes:\n  prune: no\n  maintain_tracked: yes\n")

        assert read_project_settings(tmp_path).settings == ProjectSettings(prune=False, maintain_tracked=True)

        put("echoes:\n  compress: false\n  maintain_tracked: perhaps\n")

        read = read_project_settings(tmp_path)
        assert read.settings == ProjectSettings(compress=False)
        assert "echoes.maintain_tracked is ignored" in read.warnings[0]

    @pytest.mark.parametrize(
        "text", ["", "# only a comment\n", "---\n", "null\n", "echoes:\n", "echoes: ~\n", "echoes: {}\n", "a: b\n"]
    )
    def test_a_file_without_settings_is_valid(self, put: Callable[..., Path], tmp_path: Path, text: str) -> None:
        put(text)

        read = read_project_settings(tmp_path)

        assert (read.settings, read.warnings) == (NOTHING, ())

    @pytest.mark.parametrize("value", ["null", "~", ""])
    def test_null_counts_as_absent(self, put: Callable[..., Path], tmp_path: Path, value: str) -> None:
        put(f"echoes:\n  consolidate: {value}\n  memory_line_limit: {value}\n  version_controlled: {value}\n")

        read = read_project_settings(tmp_path)

        assert (read.settings, read.warnings) == (NOTHING, ())

    @pytest.mark.parametrize("value", ["maybe", "[false]", "{a: b}", "2", '""'])
    def test_neither_yes_nor_no_is_a_warning(self, put: Callable[..., Path], tmp_path: Path, value: str) -> None:
        put(f"echoes:\n  consolidate: {value}\n")

        assert "echoes.consolidate is ignored" in warning_of(tmp_path)

    @pytest.mark.parametrize("value", ["99", "0", "-150", "many", "150.5", "1e3", "[150]", "true", "0x100", "9" * 5000])
    def test_a_limit_that_would_empty_a_memory_is_ignored(
        self, put: Callable[..., Path], tmp_path: Path, value: str
    ) -> None:
        put(f"echoes:\n  memory_line_limit: {value}\n")

        warning = warning_of(tmp_path)

        assert "echoes.memory_line_limit is ignored" in warning
        assert len(warning) < len(str(tmp_path)) + 250

    def test_the_age_limit_of_doc_packs_is_one_level_deeper(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("echoes:\n  prune: false\n  global:\n    enabled: true\n    staleness_days: 30\n    domains: [backend]\n")

        read = read_project_settings(tmp_path)

        assert (read.settings, read.warnings) == (ProjectSettings(prune=False, staleness_days=30), ())

    @pytest.mark.parametrize("value", ["0", "-1", "soon", "[30]", "{a: 1}", "30.5"])
    def test_an_invalid_age_limit_is_ignored(self, put: Callable[..., Path], tmp_path: Path, value: str) -> None:
        put(f"echoes:\n  global:\n    staleness_days: {value}\n")

        assert "echoes.global.staleness_days is ignored" in warning_of(tmp_path)
        assert read_project_settings(tmp_path).settings.staleness_days is None

    @pytest.mark.parametrize(("value", "users", "counts"), [(None, 150, 150), (400, 150, 400), (120, 150, 150)])
    def test_a_project_may_raise_the_users_limit_and_never_lower_it(
        self, value: int | None, users: int, counts: int
    ) -> None:
        assert ProjectSettings(memory_line_limit=value).effective_line_limit(users) == counts

    def test_one_invalid_value_does_not_affect_the_others(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("echoes:\n  memory_line_limit: few\n  consolidate: false\n")

        read = read_project_settings(tmp_path)

        assert read.settings == ProjectSettings(consolidate=False)
        assert len(read.warnings) == 1

    def test_of_two_equal_keys_the_last_counts(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("echoes: {consolidate: true}\necholess: 1\nechoes: {consolidate: true, consolidate: false}\n")

        assert not read_project_settings(tmp_path).settings.consolidate

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_every_encoding_of_yaml_is_read(self, put: Callable[..., Path], tmp_path: Path, encoding: str) -> None:
        put("echoes:\r\n  consolidate: false\r\n".encode(encoding))

        assert not read_project_settings(tmp_path).settings.consolidate


class TestHostile:
    @pytest.mark.parametrize(
        "text",
        [
            "echoes: [",
            "echoes:\n\tconsolidate: false\n",
            "a: 1\n---\na: 2\n",
            "echoes: {consolidate: *nobody}\n",
            b"echoes: \xff\xfe\x00",
            b"\x00\x01\x02",
            "just words",
            "- a\n- list\n",
            "echoes: [consolidate]\n",
            "echoes: no\n",
        ],
    )
    def test_a_file_that_cannot_be_parsed_gives_defaults_and_a_warning(
        self, put: Callable[..., Path], tmp_path: Path, text: str | bytes
    ) -> None:
        put(text)

        assert "is not read" in warning_of(tmp_path)

    def test_a_bomb_of_aliases_has_nothing_to_blow_up(self, put: Callable[..., Path], tmp_path: Path) -> None:
        lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
        lines += ["m0: &m0 {k: v}"]
        lines += [f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}" for n in range(1, 30)]
        put("\n".join([*lines, "echoes:", "  consolidate: false", "  memory_line_limit: *a29"]))

        read = read_project_settings(tmp_path)

        assert read.settings == ProjectSettings(consolidate=False)
        assert "memory_line_limit" in read.warnings[0]

    def test_an_honest_alias_is_understood(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("base: &base {consolidate: false}\nlimit: &limit 300\nechoes: *base\n")
        assert not read_project_settings(tmp_path).settings.consolidate

        put("limit: &limit 300\nechoes: {memory_line_limit: *limit}\n")
        assert read_project_settings(tmp_path).settings.memory_line_limit == 300

    def test_a_merge_is_not_silently_overlooked(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("base: &base {consolidate: false}\nechoes:\n  <<: *base\n")

        assert "does not merge" in warning_of(tmp_path)

    def test_an_alias_to_itself_ends(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("echoes: &self\n  consolidate: *self\n")

        assert "consolidate" in warning_of(tmp_path)

    @pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "!!map {a: &x "])
    def test_no_depth_brings_the_process_down(self, put: Callable[..., Path], tmp_path: Path, opening: str) -> None:
        put(opening * (MAX_SETTINGS_BYTES // len(opening)))

        assert "is not read" in warning_of(tmp_path)

    def test_an_absurd_depth_is_refused(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put(f"a: {'[' * MAX_DEPTH}{']' * MAX_DEPTH}\nechoes: {{consolidate: false}}\n")
        assert f"{MAX_DEPTH} levels" in warning_of(tmp_path)

        put(f"a: {'[' * (MAX_DEPTH - 1)}{']' * (MAX_DEPTH - 1)}\nechoes: {{consolidate: false}}\n")
        assert not read_project_settings(tmp_path).settings.consolidate

    def test_nothing_is_constructed(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put(
            f"a: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n"
            f"echoes:\n  consolidate: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n"
            "  memory_line_limit: !!python/name:os.mkdir 300\n"
        )

        read = read_project_settings(tmp_path)

        assert not (tmp_path / "made").exists()
        assert read.settings.consolidate
        assert len(read.warnings) == 1

    def test_a_large_file_is_refused_and_never_read_whole(self, put: Callable[..., Path], tmp_path: Path) -> None:
        file = put("echoes: {consolidate: false}\n" + "#" * MAX_SETTINGS_BYTES)
        assert "256 KiB" in warning_of(tmp_path)

        os.truncate(file, 1 << 40)  # a hole; reading it would never end
        assert "256 KiB" in warning_of(tmp_path)

    def test_the_largest_file_allowed_is_read(self, put: Callable[..., Path], tmp_path: Path) -> None:
        text = "echoes: {consolidate: false}\n"
        put(text + "#" * (MAX_SETTINGS_BYTES - len(text)))

        assert not read_project_settings(tmp_path).settings.consolidate

    def test_a_link_is_not_followed(self, tmp_path: Path) -> None:
        project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
        (project / ".rune").mkdir(parents=True)
        elsewhere.mkdir()
        (elsewhere / "talisman.yml").write_text("echoes: {consolidate: false}\n")
        (project / ".rune/talisman.yml").symlink_to(elsewhere / "talisman.yml")

        assert "symbolic link" in warning_of(project)

    def test_a_dangling_link_is_not_overlooked(self, tmp_path: Path) -> None:
        (tmp_path / ".rune").mkdir()
        (tmp_path / ".rune/talisman.yml").symlink_to("nowhere")

        assert "symbolic link" in warning_of(tmp_path)

    def test_a_directory_that_is_a_link_is_not_followed(self, tmp_path: Path) -> None:
        project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
        project.mkdir()
        elsewhere.mkdir()
        (project / ".claude").symlink_to(elsewhere)
        assert read_project_settings(project).warnings == ()

        (elsewhere / "talisman.yml").write_text("echoes: {consolidate: false}\n")
        assert "symbolic link" in warning_of(project)

    @pytest.mark.parametrize("what", ["fifo", "directory", "socket"])
    def test_a_file_that_is_not_regular_is_refused_without_waiting(self, tmp_path: Path, what: str) -> None:
        file = tmp_path / ".rune/talisman.yml"
        file.parent.mkdir()
        if what == "fifo":
            os.mkfifo(file)
        elif what == "directory":
            file.mkdir()
        else:
            if sys.platform == "darwin":
                pytest.skip("mknod needs root there")
            os.mknod(file, 0o140600)

        assert "not a plain file" in warning_of(tmp_path)

    @pytest.mark.skipif(AS_ROOT, reason="root may read everything")
    def test_unreadable_is_not_absent(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("echoes: {consolidate: false}\n").chmod(0)

        assert "permission denied" in warning_of(tmp_path).lower()

    def test_a_file_in_place_of_the_directory_counts_as_absent(self, tmp_path: Path) -> None:
        (tmp_path / ".rune").touch()

        assert read_project_settings(tmp_path).warnings == ()

    def test_no_descriptor_is_left_open(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("echoes: {consolidate: false}\n")
        lowest = os.open(tmp_path, os.O_RDONLY)
        os.close(lowest)

        for _ in range(20):
            read_project_settings(tmp_path)

        again = os.open(tmp_path, os.O_RDONLY)
        os.close(again)
        assert again == lowest


class TestReader:
    def test_it_parses_a_file_only_when_it_changed(
        self, put: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put("echoes: {consolidate: false}\n")
        reader = ProjectSettingsCache()
        first = reader.read(tmp_path)
        monkeypatch.setattr("echod.projects.settings.read_project_settings", None)

        assert reader.read(tmp_path) is first

    def test_it_sees_every_change(self, put: Callable[..., Path], tmp_path: Path) -> None:
        reader = ProjectSettingsCache()
        assert reader.read(tmp_path).settings.consolidate

        older = put("echoes: {consolidate: false}\n", ".claude/talisman.yml")
        assert not reader.read(tmp_path).settings.consolidate
        status = older.stat()
        older.write_text("echoes: {consolidate: true }\n")
        os.utime(older, ns=(status.st_atime_ns, status.st_mtime_ns))  # the same size, inode and time
        assert reader.read(tmp_path).settings.consolidate
        newer = put("echoes: {consolidate: false}\n", ".rune/talisman.yml")
        assert not reader.read(tmp_path).settings.consolidate
        newer.unlink()
        assert reader.read(tmp_path).settings.consolidate

    def test_projects_do_not_share_settings(self, put: Callable[..., Path], tmp_path: Path) -> None:
        put("echoes: {consolidate: false}\n")
        (tmp_path / "other").mkdir()
        reader = ProjectSettingsCache()

        assert not reader.read(tmp_path).settings.consolidate
        assert reader.read(tmp_path / "other").settings.consolidate


class TestObservations:
    @pytest.mark.parametrize("key", ["observe", "auto_observation"])
    @pytest.mark.parametrize(("value", "wanted"), [("false", False), ("off", False), ("true", True), ("[]", True)])
    def test_either_name_may_switch_them_off(
        self, put: Callable[..., Path], tmp_path: Path, key: str, value: str, wanted: bool
    ) -> None:
        put(f"echoes:\n  {key}: {value}\n")

        assert read_project_settings(tmp_path).settings.observe is wanted

    def test_one_name_cannot_switch_on_what_the_other_switches_off(
        self, put: Callable[..., Path], tmp_path: Path
    ) -> None:
        put("echoes: {observe: true, auto_observation: false}")

        assert not read_project_settings(tmp_path).settings.observe
