"""Check the installation, the service and the projects. Read-only.

Each check returns a sentence about its result and, where there is a problem, the fix. The command decides how to
print it.
"""

from echod.doctor.checks import run_checks
from echod.doctor.context import DoctorContext

__all__ = ["DoctorContext", "run_checks"]
