"""The door: every `echod` command comes in here and every error leaves here, once, as a sentence and an exit code.

Nothing heavy is imported at the top, so that a command pays only for what it needs.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from echod.errors import EchodError, Exit

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line and exit: a known error is a sentence, a bug is a report, an interrupt is quiet."""
    try:
        from echod.cli.app import app

        app(prog_name="echod", standalone_mode=True)
    except EchodError as error:
        sys.stderr.write(f"echod: {error}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; closing stderr too keeps the interpreter from complaining at exit.
        sys.stderr.close()
        sys.exit(Exit.OK)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(Exit.OK)
