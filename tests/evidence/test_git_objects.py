"""Objects are read as git itself reads them, wherever and however it stores them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.evidence.git_objects import IndexEntry, ObjectError, ObjectStore, apply_delta, read_index
from echod.evidence.repository import find_repository
from tests.evidence.conftest import DAY, LINES, History, git


def all_objects(root: Path) -> dict[str, str]:
    listed = git(root, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    return dict(line.split() for line in listed.splitlines())


def many_versions(history: History) -> None:
    chance = random.Random(3)
    lines = list(LINES) * 20
    for number in range(12):
        lines[chance.randrange(len(lines))] = f"changed = {number}"
        history.write("src/app.py", lines)
        history.commit()


def assert_all_readable(root: Path, objects: Path) -> None:
    store = ObjectStore(objects)
    found = all_objects(root)
    assert len(found) > 3
    for name, kind in found.items():
        read = store.read(name)
        assert read.kind == kind
        if kind != "tree":
            assert read.data.decode() == git(root, "cat-file", kind, name)
    store.close()


@pytest.mark.parametrize("packing", [(), ("gc", "-q"), ("repack", "-adq", "--depth=50", "--window=50")])
def test_loose_and_packed_objects_are_read(history: History, packing: tuple[str, ...]) -> None:
    many_versions(history)
    if packing:
        git(history.root, *packing)
        assert "chain length" in git(history.root, "verify-pack", "-v", *packs(history.root))
    assert_all_readable(history.root, history.root / ".git/objects")


def packs(root: Path) -> list[str]:
    return [str(file) for file in (root / ".git/objects/pack").glob("*.idx")]


def test_deltas_that_name_their_base_are_read(history: History) -> None:
    many_versions(history)
    git(history.root, "-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq")
    assert_all_readable(history.root, history.root / ".git/objects")


def test_borrowed_objects_are_read(history: History, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--shared", str(history.root), "borrower")
    assert_all_readable(history.root, tmp_path / "borrower/.git/objects")


def test_a_missing_or_damaged_object_is_an_error(history: History) -> None:
    store = ObjectStore(history.root / ".git/objects")
    with pytest.raises(ObjectError, match="missing"):
        store.read("0" * 40)
    name = git(history.root, "rev-parse", "HEAD:src/app.py").strip()
    file = history.root / ".git/objects" / name[:2] / name[2:]
    file.chmod(0o644)
    file.write_bytes(b"damaged")
    with pytest.raises(ObjectError):
        store.read(name)


@pytest.mark.parametrize("cut", [3, 40])
def test_a_pack_that_is_cut_off_is_an_error(history: History, cut: int) -> None:
    git(history.root, "gc", "-q")
    (pack,) = (history.root / ".git/objects/pack").glob("*.pack")
    name = git(history.root, "rev-parse", "HEAD:src/app.py").strip()
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:cut])
    with pytest.raises(ObjectError):
        ObjectStore(history.root / ".git/objects").read(name)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_a_damaged_delta_is_an_error_or_gives_its_announced_size(base: bytes, delta: bytes) -> None:
    try:
        made = apply_delta(base, delta)
    except (ValueError, IndexError):
        return
    assert len(made) < 1 << 24


def test_a_repository_with_sha256_names_is_read(tmp_path: Path) -> None:
    root = tmp_path / "other"
    root.mkdir()
    git(root, "init", "-q", "--object-format=sha256")
    (root / "a.py").write_text("x = 1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one", day=DAY)
    repository = find_repository(root)
    assert repository is not None
    head = repository.head()
    assert head is not None
    blob = repository.blob_name(repository.commit(head), "a.py")
    assert blob is not None
    assert repository.read_blob(blob) == b"x = 1\n"
    repository.close()


def test_the_index_has_the_files_as_git_saw_them_last(history: History) -> None:
    entries = read_index((history.root / ".git/index").read_bytes())
    status = (history.root / "src/app.py").stat()
    blob = git(history.root, "rev-parse", "HEAD:src/app.py").strip()
    assert entries == {b"src/app.py": IndexEntry(blob, status.st_size, status.st_mtime_ns, status.st_ctime_ns)}


def test_a_damaged_index_has_no_files(history: History) -> None:
    data = (history.root / ".git/index").read_bytes()
    assert read_index(data[:40]) == read_index(b"junk") == {}
