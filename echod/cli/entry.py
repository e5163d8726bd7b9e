"""The door: every `echod` command comes in here and every error leaves here, once, as a sentence and an exit code.

Nothing heavy is imported at the top, so that a command pays only for what it needs; an agent's hook, which comes in
here too, for nothing at all.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line and exit: a known error is a sentence, a bug is a report, an interrupt is quiet."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
        from echod.hooks.run import main as be_a_hook

        be_a_hook()
    from echod.errors import EchodError, Exit

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
