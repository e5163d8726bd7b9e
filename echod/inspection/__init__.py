"""Read-only views of a project's memory: stored inspections of its files, open review items, secrets.

The names below are cheap to import. The other modules load the parser, the policies or the redactor, so they are
imported by their own paths: `inspect` (facts from the database, and computing what is stored) and
`secrets` (scanning). The jobs that answer review items import `review` by its path.
"""

from echod.inspection.cache import FileInspection, InspectionCache, load_inspections, save_inspections
from echod.inspection.review import RestoredFindings, ReviewCollector, find_restored_findings

__all__ = [
    "FileInspection", "InspectionCache", "RestoredFindings", "ReviewCollector", "find_restored_findings",
    "load_inspections", "save_inspections",
]  # fmt: skip
