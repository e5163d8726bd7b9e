"""Versions, ages, manifests and registries as values: invalid input is reported and never mistaken for something else."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.packs.manifest import (
    InvalidManifest,
    PackAges,
    PackManifest,
    VersionOrder,
    age_in_days,
    compare_versions,
    compose_manifest,
    is_stack_name,
    is_stale,
    is_version,
    read_manifest,
    read_registry,
)

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=timezone(timedelta(hours=2)))

VERSIONS = st.builds(
    lambda numbers, preview: ".".join(map(str, numbers)) + preview,
    st.lists(st.integers(0, 30), min_size=1, max_size=4),
    st.sampled_from(["", "-rc.1", "-rc.2", "-rc.10", "-alpha", "-1"]),
)


# Names


@pytest.mark.parametrize("name", ["fastapi", "tailwind-v4", "A_1", "x" * 64, "ab"])
def test_a_name_of_letters_digits_dash_and_underscore_is_one(name: str) -> None:
    assert is_stack_name(name)


@pytest.mark.parametrize(
    "name", ["", "a", "x" * 65, "--help", "-a", "1ab", "../x", "a/b", "a.b", "a b", "fastapi\n", "späße", "_ab", ".ab"]
)
def test_a_path_or_an_option_is_not_a_name(name: str) -> None:
    assert not is_stack_name(name)


# Versions


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.9.0", "1.10.0"),
        ("1.0.0", "2.0.0"),
        ("1.0", "1.0.1"),
        ("1.0.0-rc.1", "1.0.0"),
        ("1.0.0-rc.2", "1.0.0-rc.10"),
        ("1.0.0-alpha", "1.0.0-beta"),
        ("1.0.0-1", "1.0.0-alpha"),
        ("v1.2.3", "1.2.4"),
    ],
)
def test_versions_are_compared_as_versions(older: str, newer: str) -> None:
    assert (compare_versions(older, newer), compare_versions(newer, older)) == (VersionOrder.OLDER, VersionOrder.NEWER)


@pytest.mark.parametrize(("one", "other"), [("1.0.0", "1.0"), ("v1.0.0", "1.0.0"), ("1.0.0+7", "1.0.0"), ("x", " x ")])
def test_versions_that_mean_the_same_are_the_same(one: str, other: str) -> None:
    assert compare_versions(one, other) is VersionOrder.SAME


@pytest.mark.parametrize("odd", ["latest", "", "1.x", "1..0", "1.0.0-", "\u0661.0", "9" * 5000, "1." * 5000])
def test_an_invalid_version_is_neither_older_nor_newer(odd: str) -> None:
    assert not is_version(odd)
    assert compare_versions(odd, "1.0.0") is VersionOrder.UNKNOWN


@given(VERSIONS, VERSIONS, VERSIONS)
def test_versions_have_one_order(one: str, two: str, three: str) -> None:
    turned = {
        VersionOrder.OLDER: VersionOrder.NEWER,
        VersionOrder.NEWER: VersionOrder.OLDER,
        VersionOrder.SAME: VersionOrder.SAME,
    }

    assert compare_versions(two, one) is turned[compare_versions(one, two)]
    assert compare_versions(one, one) is VersionOrder.SAME
    if compare_versions(one, two) is compare_versions(two, three) is VersionOrder.OLDER:
        assert compare_versions(one, three) is VersionOrder.OLDER


# Ages


@pytest.mark.parametrize(
    ("stamp", "days"),
    [
        ("2026-11-20", 0),
        ("2026-08-22", 90),
        ("2026-11-21", -1),
        ("20260822", 90),
        ("2026-08-22T10:00:00Z", 90),
        ("2026-08-22T09:59:59Z", 90),
        ("2026-08-21T10:00:00Z", 91),
        ("2026-08-22T12:00:00+02:00", 90),
        ("2026-08-22T12:00:01+02:00", 89),
        ("2026-08-22T05:00:00.123456-05:00", 89),
        ("2026-08-22T12:00:00", 90),
        (" 2026-08-22 12:00 ", 90),
        ("2026-08-22T10:00:00.5Z", 89),
    ],
)
def test_an_age_is_counted_in_whole_days_however_the_moment_is_written(stamp: str, days: int) -> None:
    assert age_in_days(stamp, NOW) == days


@pytest.mark.parametrize("stamp", [None, "", "soon", "2026-13-01", "2026-02-30T00:00:00Z", "20" * 60, "2026-11"])
def test_an_invalid_date_has_no_age(stamp: str | None) -> None:
    assert age_in_days(stamp, NOW) is None


@pytest.mark.parametrize(
    ("updated", "installed", "checked", "stale"),
    [
        (90, 90, None, False),
        (91, 0, None, True),
        (0, 91, None, True),
        (None, 91, None, True),
        (None, 90, None, False),
        (None, None, None, None),
        (400, 400, 90, False),
        (400, 400, 91, True),
        (-5, -5, None, False),
    ],
)
def test_a_pack_of_exactly_the_limit_is_fresh_and_of_unknown_age_neither(
    updated: int | None, installed: int | None, checked: int | None, stale: bool | None
) -> None:
    assert is_stale(PackAges(updated, installed, checked), 90) is stale


# Manifests

SEEN_ELSEWHERE = {
    "name": "fastapi",
    "version": "1.0.0",
    "installed_at": "2026-03-11T08:15:00.000Z",
    "last_updated": "2026-03-11",
    "source_version": "1.0.0",
    "domains": ["backend"],
}


def test_a_manifest_of_another_program_is_understood() -> None:
    found = read_manifest(json.dumps(SEEN_ELSEWHERE).encode(), "fastapi")

    assert found == PackManifest("fastapi", "1.0.0", "2026-03-11T08:15:00.000Z", "2026-03-11", "1.0.0", ("backend",))


def test_unknown_fields_of_a_manifest_stay_in_it() -> None:
    values = {**SEEN_ELSEWHERE, "pinned": {"by": ["me"]}, "note": None}
    found = read_manifest(json.dumps(values).encode(), "fastapi")

    assert isinstance(found, PackManifest)
    again = json.loads(compose_manifest(found))
    assert {key: again[key] for key in ("pinned", "note")} == {"pinned": {"by": ["me"]}, "note": None}


@given(
    st.builds(
        PackManifest,
        name=st.just("fastapi"),
        version=st.text(min_size=1).filter(lambda text: text == text.strip()),
        installed_at=st.sampled_from([None, "2026-11-20", "x"]),
        last_updated=st.sampled_from([None, "2026-11-20"]),
        source_version=st.just("1.0"),
        domains=st.tuples(st.text()),
        sha256=st.sampled_from([None, "ab"]),
        registry=st.sampled_from([None, "echod"]),
        checked_at=st.sampled_from([None, "2026-11-20"]),
        extra_fields=st.sampled_from([(), (("x", "1"),)]),
    )
)
def test_a_manifest_that_is_written_is_read_again(manifest: PackManifest) -> None:
    assert read_manifest(compose_manifest(manifest), "fastapi") == manifest


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b'{"name"', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 60_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "no version"),
        (b'{"name": "fastapi", "version": 3}', "no version"),
        (b'{"name": "nextjs", "version": "1.0.0"}', "different pack"),
        (b'{"name": "fastapi", "version": "1.0.0", "schema": 2}', "update echod"),
        (b'{"name": "fastapi", "version": "1.0.0", "schema_version": 9}', "update echod"),
        (b" " * 70_000, "larger"),
    ],
)
def test_an_invalid_manifest_has_a_reason_and_is_never_empty(data: bytes, reason: str) -> None:
    found = read_manifest(data, "fastapi")

    assert isinstance(found, InvalidManifest)
    assert reason in found.reason


# Registries


def registry(**packs: object) -> bytes:
    return json.dumps({"version": "1.0.0", "packs": packs}).encode()


def pack(**changed: object) -> dict[str, object]:
    return {"name": "FastAPI", "version": "1.2.0", "last_updated": "2026-11-20", "domains": ["backend"], **changed}


def test_a_pack_that_cannot_be_used_is_named_and_the_others_are_there() -> None:
    read = read_registry(
        registry(
            fastapi=pack(),
            x=pack(),
            nover=pack(version="latest"),
            nodate=pack(last_updated="soon"),
            noname=pack(name=""),
            nothing=None,
            odd=pack(domains="backend"),
        )
    )

    assert [listed.stack for listed in read.listings] == ["fastapi"]
    assert len(read.problems) == 6
    for name in ("'x'", "nover", "nodate", "noname", "nothing", "odd"):
        assert any(name in problem for problem in read.problems)


def test_an_unknown_domain_is_reported_and_the_pack_stays_available() -> None:
    read = read_registry(registry(fastapi=pack(domains=["backend", "cooking"])))

    assert len(read.listings) == 1
    assert "cooking" in read.problems[0]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"packs": []}', b"[" * 100_000, b" " * 1_100_000])
def test_an_invalid_registry_has_a_reason(data: bytes) -> None:
    read = read_registry(data)

    assert read.listings == ()
    assert len(read.problems) == 1


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text() | st.integers(), lambda s: st.dictionaries(st.text(), s)).map(
        lambda v: json.dumps({"packs": v}).encode()
    )
)
def test_no_registry_and_no_manifest_ends_in_an_error(data: bytes) -> None:
    read_registry(data)
    read_manifest(data, "fastapi")


def test_utc_and_local_zones_agree_on_an_age() -> None:
    assert age_in_days("2026-08-22T10:00:00Z", NOW) == age_in_days("2026-08-22T10:00:00Z", NOW.astimezone(UTC))
