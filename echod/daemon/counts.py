"""What was counted in files, left in the runtime directory for the next process that looks at them."""

from __future__ import annotations

from pathlib import Path

from echod.daemon.leave import leave
from echod.inspection.counts import Counted
from echod.logger import get_logger

log = get_logger(__name__)


def take_up(file: Path) -> Counted:
    """What an earlier process left; nothing where there is none, or none that can be understood."""
    try:
        return Counted.from_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Counted()


def hand_on(counted: Counted, file: Path) -> None:
    """Leave what is new for the next process, if the directory is there; it is worth no trouble."""
    if not counted.has_news or not file.parent.is_dir():
        return
    try:
        leave(file, counted.to_json())
    except OSError as error:
        log.info("counts_not_left", reason=error.strerror)
