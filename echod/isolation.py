"""Keep an error about one thing from ending the work on all others: a project, a role, a pack, an event, a cache.

Files of projects, of other programs and of an unclean shutdown contain anything. Each reader names the errors that it
expects. This module is the boundary for those that no reader expects: the one thing is left alone, with a sentence for
the user and a report in the log, and the loop around it continues. Errors of echod's own state (`StateError`) are not
isolated, because no thing can be worked on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from echod.errors import EchodError, StateError, os_reason
from echod.log import get_logger

log = get_logger(__name__)


@contextmanager
def isolated(subject: str, report: Callable[[str], object] | None = None) -> Iterator[None]:
    """End the block at an error instead of raising it, and call `report` with a sentence about it.

    Args:
        subject: the thing that the block works on, as the subject of a sentence: a path, "The doc pack fastapi".
        report: receives the sentence for the user. The log has it in any case.

    Raises:
        StateError: the database, a lock or the state directory was lost.
    """
    try:
        yield
    except StateError:
        raise
    except EchodError as error:
        log.warning("left_alone", subject=subject, reason=str(error))
        if report is not None:
            report(str(error))
    except OSError as error:
        log.warning("left_alone", subject=subject, reason=repr(error))
        if report is not None:
            report(left_alone_text(subject, error))
    except Exception as error:
        log.exception("left_alone", subject=subject)
        if report is not None:
            report(left_alone_text(subject, error))


def left_alone_text(subject: str, error: Exception) -> str:
    """Return the sentence about a thing that echod leaves alone because of an error."""
    return f"{subject} is left alone: {error_reason(error)}."


def error_reason(error: Exception) -> str:
    """Return the reason of an error as half a sentence, with the next step where there is one."""
    match error:
        case MemoryError():
            return "it needs more memory than there is; make its files smaller"
        case RecursionError():
            return "something in it is nested too deeply; simplify it"
        case UnicodeError():
            return "something in it is not UTF-8; rename it or save it as UTF-8"
        case OSError():
            location = f" ({error.filename})" if isinstance(error.filename, str) else ""
            return f"{os_reason(error)}{location}; check that path"
        case _:
            return f"an unexpected {type(error).__name__}; the log has the report"
