"""The files that describe the project agree with each other."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

import echod
from tests.packaging.release import check_changelog, check_day
from tests.packaging.wheel import MANUAL, MINOR_VERSIONS, REQUIRED_FILES, ROOT, PackagingError, check_wheel

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def package_name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def test_the_lock_has_a_version_and_hashes_of_every_direct_dependency() -> None:
    lock = (ROOT / "dev.lock").read_text()
    locked = {package_name(line) for line in lock.splitlines() if "==" in line}
    extras = project()["project"].get("optional-dependencies", {}).values()
    direct = [*project()["project"]["dependencies"], *project()["dependency-groups"]["dev"], *chain(*extras)]

    assert {package_name(requirement) for requirement in direct} - {"echod-memory"} <= locked
    assert "--hash=sha256:" in lock
    assert "://" not in lock, "the lock names no host: each user has an own index"


def test_the_classifiers_are_the_pythons_that_are_tested() -> None:
    classifiers = [name for name in project()["project"]["classifiers"] if "Python :: 3." in name]

    assert classifiers == [f"Programming Language :: Python :: 3.{minor}" for minor in MINOR_VERSIONS]
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in MINOR_VERSIONS]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_only_targets_that_exist_and_starts_without_permissions(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = workflow.read_text()
    used = {word for line in re.findall(r"run: make ([a-z -]+)$", text, re.MULTILINE) for word in line.split()}

    assert used
    assert used <= targets
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert "secrets." not in text


def test_the_site_has_every_page() -> None:
    navigation = json.dumps(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])

    assert set(re.findall(r"[\w-]+\.md", navigation)) == {page.name for page in (ROOT / "docs").glob("*.md")}


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))],
    ids=lambda page: page.name,
)
def test_a_relative_link_leads_to_a_file_and_from_the_site_to_one_of_its_pages(page: Path) -> None:
    """`make docs` checks the same, and the anchors too, but takes long."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    targets = [(page.parent / link).resolve() for link in links]

    assert [str(target) for target in targets if not target.exists()] == []
    if page.parent.name == "docs":
        assert [str(target) for target in targets if not target.is_relative_to(ROOT / "docs")] == []


@pytest.mark.parametrize(
    ("text", "has_version", "has_day"),
    [
        ("# Changelog\n\n## 1.2.3 (2026-11-28)\n\n- x\n", True, True),
        ("# Changelog\n\n## 1.2.3 (unreleased)\n", True, False),
        ("# Changelog\n\n## 1.2.3 (soon)\n", False, False),
        ("# Changelog\n\n## 1.2.4 (2026-11-28)\n", False, False),
        ("# Changelog\n\n## Next\n\n## 1.2.3 (2026-11-28)\n", False, False),
        ("# Changelog\n", False, False),
    ],
)
def test_a_release_needs_a_changelog_with_its_version_and_day(text: str, *, has_version: bool, has_day: bool) -> None:
    assert (check_changelog(text, "1.2.3") == "") is has_version
    assert (check_day(text, "1.2.3") == "") is has_day


@pytest.mark.parametrize("change", ["complete", "missing", "foreign"])
def test_a_wheel_has_its_data_files_and_nothing_else(tmp_path: Path, change: str) -> None:
    import zipfile

    names = [*REQUIRED_FILES, MANUAL, f"echod_memory-{echod.__version__}.dist-info/licenses/LICENSE"]
    if change == "missing":
        names.pop(0)
    if change == "foreign":
        names.append("tests/demo.py")
    with zipfile.ZipFile(tmp_path / "echod.whl", "w") as archive:
        for name in names:
            archive.writestr(name, "")

    if change == "complete":
        check_wheel(tmp_path / "echod.whl")
    else:
        with pytest.raises(PackagingError, match=change):
            check_wheel(tmp_path / "echod.whl")
