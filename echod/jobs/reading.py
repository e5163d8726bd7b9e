"""What findings files say, kept from the moment they were understood until they are folded in.

To understand a file takes time that grows with it. The writers' lock must not be held meanwhile, so a job reads ahead
of taking it; and a file that is taken up by parts is understood once, not for each part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from echod.memory.consolidation.intake import Rejected, Taken, take_in
from echod.memory.consolidation.plan import FindingsFile
from echod.store.digests import digest

_Question = tuple[str, str, str, date, date]


class Reading:
    """Remembers the files of the newest `ahead`; one for a worker."""

    def __init__(self) -> None:
        self._said: dict[_Question, Taken | Rejected] = {}

    def ahead(self, files: Iterable[FindingsFile], today: date) -> None:
        """Understand these files, and forget all others."""
        self._said = {_question(file, today): self.take_in(file, today) for file in files}

    def take_in(self, file: FindingsFile, today: date) -> Taken | Rejected:
        """What `echod.memory.consolidation.intake.take_in` says of a file, at once where it was read ahead."""
        said = self._said.get(_question(file, today))
        return take_in(file, today) if said is None else replace(said, file=file)


def _question(file: FindingsFile, today: date) -> _Question:
    return file.name, file.agent, digest(file.data), file.date, today
