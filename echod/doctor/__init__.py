"""Check the installation, the service and the projects, in this order. Read-only.

Each check returns a sentence about its result and, where there is a problem, the fix. The command decides how to
print it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from echod.app.context import open_read_context
from echod.contract.commands import Check, CheckResult, DoctorReport
from echod.doctor.machine import (
    DoctorContext,
    check_daemon,
    check_database,
    check_directories,
    check_installation,
    check_merge_driver,
    check_service_program,
    check_settings,
    check_watching,
    command_line,
    note,
    problem,
)
from echod.doctor.projects import (
    check_excluded,
    check_missing_project,
    check_project,
    check_project_without_store,
    check_sessions,
    check_skipped,
)
from echod.errors import EchodError
from echod.projects.discovery import DiscoveredStores, ProjectLocator, discover_stores
from echod.projects.registry import ProjectRegistry, expand_globs
from echod.store.layout import Store
from echod.workflows.model import Verdict

__all__ = ["DoctorContext", "run_checks"]


def run_checks(
    context: DoctorContext, only_project: Path | None, on_check: Callable[[Check], object] = lambda _: None
) -> DoctorReport:
    """Check everything. If `only_project` is given, check only that project, whether it is registered or not.

    `on_check` is called after each check, since all of them can take long.
    """
    checks = []
    for check in _run_all(context, only_project):
        checks.append(check)
        on_check(check)
    return DoctorReport(healthy=all(check.result is not CheckResult.PROBLEM for check in checks), checks=tuple(checks))


def _run_all(context: DoctorContext, only_project: Path | None) -> Iterator[Check]:
    yield from check_installation(context)
    yield from check_service_program(context)
    yield from check_directories(context)
    yield from check_settings(context)
    yield from check_database(context)
    yield from check_daemon(context)
    try:
        discovered = _discover(context)
    except EchodError as error:
        yield problem("projects", str(error), f"Correct {context.paths.projects} or the settings.")
        discovered = DiscoveredStores()
    yield from check_watching(context, discovered.stores)
    if only_project is None:
        yield from _check_listed_projects(context, discovered)
    else:
        yield from _check_one_project(context, discovered, only_project)


def _discover(context: DoctorContext) -> DiscoveredStores:
    registered = ProjectRegistry(context.paths.projects).roots()
    roots = (*registered, *expand_globs(context.settings.projects))
    return discover_stores(roots, _locator(context))


def _locator(context: DoctorContext) -> ProjectLocator:
    return ProjectLocator.from_environment(context.environ)


def _check_listed_projects(context: DoctorContext, discovered: DiscoveredStores) -> Iterator[Check]:
    try:
        for warning in ProjectRegistry(context.paths.projects).list_projects().warnings:
            yield problem("projects", warning, "", context.paths.projects)
    except EchodError:
        return  # reported by _run_all
    if not (discovered.projects or discovered.missing or discovered.without_store):
        yield note("no-projects", "No project is maintained.", "Add one with: echod add PATH")
    yield from map(check_missing_project, discovered.missing)
    yield from map(check_project_without_store, discovered.without_store)
    yield from map(check_excluded, discovered.excluded)
    yield from map(check_skipped, discovered.linked)
    for project in discovered.projects:
        stores = discovered.stores_in(project)
        yield from check_project(context, project, stores, _gate_verdict(context, project, stores))
        yield from check_merge_driver(context, project, stores)
    yield from check_sessions(context, discovered.projects)


def _check_one_project(context: DoctorContext, discovered: DiscoveredStores, project: Path) -> Iterator[Check]:
    own = discover_stores((project,), _locator(context))
    if project not in {*discovered.projects, *discovered.missing, *discovered.without_store}:
        yield from _check_unregistered(own, project)
    else:
        yield from map(check_missing_project, own.missing)
        yield from map(check_project_without_store, own.without_store)
    yield from map(check_skipped, own.linked)
    if own.projects:
        yield from check_project(context, project, own.stores, _gate_verdict(context, project, own.stores))
        yield from check_sessions(context, (project,))
        yield from check_merge_driver(context, project, own.stores)


def _check_unregistered(own: DiscoveredStores, project: Path) -> Iterator[Check]:
    """Report why a path is not maintained, with the command that is right there."""
    if not project.exists():
        yield problem("project-missing", "The path does not exist. Nothing is registered there.", "", project)
    elif not project.is_dir():
        yield problem("project-missing", "The path is not a directory. Name the directory of a project.", "", project)
    elif own.excluded:
        yield check_excluded(own.excluded[0])
    elif own.projects:
        fix = command_line("echod", "add", project)
        yield note("project-unregistered", "The project is not maintained.", fix, project)
    elif not own.linked:
        text = "The directory is not maintained: it has no memory directory."
        yield note("project-unregistered", text, f"Create one with: {command_line('echod', 'init', project)}", project)


def _gate_verdict(context: DoctorContext, project: Path, stores: tuple[Store, ...]) -> Verdict | None:
    """Return the gate's verdict; None if the database, which has its own check, cannot be read."""
    try:
        with open_read_context(context.paths, context.settings, context.environ, lambda: context.now) as read_context:
            return read_context.project_gate.check(project, stores, context.now)
    except EchodError:
        return None
