"""What `echod consolidate --dry-run` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class PlannedFinding:
    """What would become of a finding, or of an entry because of one.

    `action` is `add`, `duplicate` (the entry `id` says it already), `supersede` (the entry `id` goes to the archive)
    or `review` (a person decides; `note` says what).
    """

    action: str
    id: str
    title: str
    store: str
    role: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedFindings:
    """What would become of a findings file: `consume`, `set-aside`, or `wait` (it is being written).

    `left`: nothing becomes of any of the role. `note` says why.
    """

    action: str
    name: str
    store: str
    role: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """`echod consolidate --dry-run`."""

    findings: tuple[PlannedFinding, ...] = ()
    files: tuple[PlannedFindings, ...] = ()
    schema: int = SCHEMA
