"""What `echod packs list` and `echod packs status` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA, PackInfo


@dataclass(frozen=True, slots=True)
class PacksReport:
    """`echod packs list` and `echod packs status`; `problems` are sentences about registries and manifests."""

    packs: tuple[PackInfo, ...] = ()
    problems: tuple[str, ...] = ()
    schema: int = SCHEMA
