"""What is passed over in a memory directory is named, with a way out that works."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from echod.store import layout
from echod.store.layout import find_linked_stores, find_roles, find_skipped, find_stores

FINDING = "### [2026-03-02] Pattern: Close the pool\n- **layer**: inscribed\n- Close it.\n"


@pytest.fixture
def store(tmp_path: Path) -> layout.Store:
    project = (tmp_path / "my project").resolve()
    (project / ".rune/echoes/reviewer").mkdir(parents=True)
    (found,) = find_stores(project)
    return found


def write(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FINDING)
    return path


@pytest.mark.parametrize("name", ["ward", "code reviewer", "Prüfer", "审查", "a.b-c_d", "отчёт 2"])
def test_agents_may_have_names_of_any_script(store: layout.Store, name: str) -> None:
    write(store.root / "reviewer" / f"{name}-findings.md")

    (role,) = find_roles(store)
    assert [path.name for path in layout.list_findings_files(role)] == [f"{name}-findings.md"]
    assert find_skipped(store) == ()


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("findings.md", "reviewer-findings.md"),
        ("bob_findings.md", "bob-findings.md"),
        ("findings-bob.md", "bob-findings.md"),
        ("Bob Findings.md", "Bob-findings.md"),
        ("bob.findings.MD", "bob-findings.md"),
        ("bob-finding.md", "bob-findings.md"),
        ("bob-findings.txt", "bob-findings.md"),
    ],
)
def test_misnamed_findings_are_named_and_can_be_renamed_as_suggested(
    store: layout.Store, name: str, right: str
) -> None:
    path = write(store.root / "reviewer" / name)

    (item,) = find_skipped(store)
    assert item.path == path
    subprocess.run(["/bin/sh", "-c", item.fix.partition(": ")[2]], check=True)

    assert [found.name for found in layout.list_findings_files(find_roles(store)[0])] == [right]
    assert find_skipped(store) == ()


def test_no_suggestion_replaces_another_file(store: layout.Store) -> None:
    write(store.root / "reviewer/bob_findings.md")
    write(store.root / "reviewer/bob-findings.md")

    (item,) = find_skipped(store)

    assert "mv" not in item.fix


@pytest.mark.parametrize(("name", "right"), [("Rôle Ü", "Role-U"), ("code reviewer", "code-reviewer"), ("a.b", "a-b")])
def test_roles_with_unusual_names_are_named(store: layout.Store, name: str, right: str) -> None:
    write(store.root / name / "x-findings.md")

    (item,) = find_skipped(store)
    subprocess.run(["/bin/sh", "-c", item.fix.partition(": ")[2]], check=True)

    assert right in [role.name for role in find_roles(store)]


def test_a_name_that_cannot_be_shown_is_escaped(store: layout.Store) -> None:
    path = write(Path(os.fsdecode(os.fsencode(store.root) + b"/caf\xe9\n") + "/x-findings.md"))

    (item,) = find_skipped(store)

    assert item.describe().isprintable()
    assert path.exists()


def test_directories_without_memory_are_not_mentioned(store: layout.Store) -> None:
    (store.root / "my pictures").mkdir()
    (store.root / ".echod").mkdir()
    write(store.root / "reviewer/notes.md")
    write(store.root / "reviewer/archive/findings/2026-01-01-bob.md")

    assert find_skipped(store) == ()


def test_links_are_named_with_their_targets(store: layout.Store, tmp_path: Path) -> None:
    shared = write(tmp_path / "shared/x-findings.md").parent.resolve()
    (store.root / "auditor").symlink_to(shared)
    (store.root / "reviewer/y-findings.md").symlink_to(shared / "x-findings.md")

    items = {item.path.name: item for item in find_skipped(store)}

    assert items.keys() == {"auditor", "y-findings.md"}
    assert str(shared) in items["auditor"].reason
    subprocess.run(["/bin/sh", "-c", items["auditor"].fix.partition(": ")[2]], check=True)
    assert "auditor" in [role.name for role in find_roles(store)]
    assert (shared / "x-findings.md").exists()


def test_a_role_of_another_project_is_maintained_there(store: layout.Store, tmp_path: Path) -> None:
    other = write(tmp_path / "other/.claude/echoes/auditor/MEMORY.md").parent.resolve()
    (store.root / "auditor").symlink_to(other)

    (item,) = find_skipped(store)

    assert item.fix.endswith(f"echod add {(tmp_path / 'other').resolve()}")


@pytest.mark.parametrize("link", [".claude", ".claude/echoes"])
def test_a_linked_memory_directory_is_named(tmp_path: Path, link: str) -> None:
    project = (tmp_path / "p").resolve()
    target = (tmp_path / "shared" / Path(link).name).resolve()
    write((target if link.endswith("echoes") else target / "echoes") / "reviewer/MEMORY.md")
    (project / link).parent.mkdir(parents=True)
    (project / link).symlink_to(target)

    (item,) = find_linked_stores(project)

    assert item.path == project / link
    assert str(target) in item.reason
    assert find_stores(project) == ()
    subprocess.run(["/bin/sh", "-c", item.fix.partition(": ")[2]], check=True) if "rm" in item.fix else None


def test_a_link_to_the_agents_own_directory_is_not_mentioned(tmp_path: Path) -> None:
    agent = tmp_path / "home/.claude"
    (agent / "echoes/global").mkdir(parents=True)
    project = tmp_path / "p"
    project.mkdir()
    (project / ".claude").symlink_to(agent)

    assert find_linked_stores(project.resolve()) == ()
