"""All checks, in the order in which a person would ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from echod.app.context import look_out
from echod.contract.commands import Check, CheckResult, DoctorReport
from echod.doctor.case import Case, command, note, problem
from echod.doctor.machine import (
    check_daemon,
    check_database,
    check_directories,
    check_installation,
    check_settings,
    check_watching,
)
from echod.doctor.projects import check_missing, check_project, check_without_store
from echod.errors import EchodError
from echod.projects.discovery import Roster, call
from echod.projects.registry import Projects, expand
from echod.store.layout import Store
from echod.workflows.model import Verdict


def examine(case: Case, only: Path | None) -> DoctorReport:
    """Check everything; of the projects `only` the one, whether it is registered or not."""
    checks = tuple(_checks(case, only))
    return DoctorReport(healthy=all(check.result is not CheckResult.PROBLEM for check in checks), checks=checks)


def _checks(case: Case, only: Path | None) -> Iterator[Check]:
    yield from check_installation(case)
    yield from check_directories(case)
    yield from check_settings(case)
    yield from check_database(case)
    yield from check_daemon(case)
    try:
        roster = _roster(case)
    except EchodError as error:
        yield problem("projects", str(error), f"Mend {case.paths.projects} or the settings.")
        roster = Roster()
    yield from check_watching(case, roster.stores)
    if only is None:
        yield from _list(case, roster)
    else:
        yield from _one(case, roster, only)


def _roster(case: Case) -> Roster:
    registered = Projects(case.paths.projects).roots()
    return call((*registered, *expand(case.settings.projects)))


def _list(case: Case, roster: Roster) -> Iterator[Check]:
    try:
        for warning in Projects(case.paths.projects).listed().warnings:
            yield problem("projects", warning, "", case.paths.projects)
    except EchodError:
        return  # said before
    if not (roster.projects or roster.missing or roster.without_store):
        yield note("no-projects", "No project is maintained.", "Add one with: echod add PATH")
    yield from map(check_missing, roster.missing)
    yield from map(check_without_store, roster.without_store)
    for project in roster.projects:
        stores = roster.stores_in(project)
        yield from check_project(case, project, stores, _verdict(case, project, stores))


def _one(case: Case, roster: Roster, project: Path) -> Iterator[Check]:
    if project not in {*roster.projects, *roster.missing, *roster.without_store}:
        yield note("project-unregistered", "The project is not maintained.", command("echod", "add", project), project)
    there = call((project,))
    yield from map(check_missing, there.missing)
    yield from map(check_without_store, there.without_store)
    if there.projects:
        yield from check_project(case, project, there.stores, _verdict(case, project, there.stores))


def _verdict(case: Case, project: Path, stores: tuple[Store, ...]) -> Verdict | None:
    """The gate's verdict; None if the database, which was checked before, cannot be read."""
    try:
        with look_out(case.paths, case.settings, case.environ, lambda: case.now) as lookout:
            return lookout.gatekeeper.ask(project, stores, case.now)
    except EchodError:
        return None
