"""What findings files are called where they are kept, set aside or given back, and what they were called before.

All paths are relative to the role. An agent's name is written without a secret in it.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import PurePosixPath

from echod.store.layout import FINDINGS_ARCHIVE, QUARANTINE, agent_of

_SET_ASIDE = re.compile(r"\d{4}-\d\d-\d\d-(?P<findings>.+-findings)(?:-\d+)?\.md")
_LONGEST_AGENT = 100


def kept_at(findings: str, day: date) -> PurePosixPath:
    """Where a file is kept that was consumed on a local day."""
    return PurePosixPath(FINDINGS_ARCHIVE) / f"{day.isoformat()}-{agent_of(PurePosixPath(findings))}.md"


def set_aside_at(findings: str, day: date) -> PurePosixPath:
    """Where a file waits for a person that could not be understood on a local day."""
    return PurePosixPath(QUARANTINE) / f"{day.isoformat()}-{findings}"


def before_set_aside(name: str) -> str:
    """What a file in quarantine was called before; its own name where nothing tells that."""
    match = _SET_ASIDE.fullmatch(name)
    return f"{match['findings']}.md" if match else name


def restored_name(findings: str, number: int) -> str:
    """What a file is called that is given back while another one has its name."""
    return _another(findings, "restored", number)


def late_name(findings: str, number: int) -> str:
    """What a file is called with what an agent wrote into one that was just consumed."""
    return _another(findings, "late", number)


def _another(findings: str, why: str, number: int) -> str:
    return f"{agent_of(PurePosixPath(findings))[:_LONGEST_AGENT]}-{why}-{number}-findings.md"
