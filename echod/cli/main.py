"""The entry point of every `echod` command, where each error becomes one sentence and an exit code.

Imports at the top only modules that Python itself has loaded: an agent's hook enters here too, and its time is the
agent's. Imports inside `main` also make an error in them a bug report like any other.
"""

from __future__ import annotations

import codecs
import io
import os
import sys

TYPE_CHECKING = False  # importing typing takes longer than a hook may run
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPT_EXIT_CODE = 130
_GC_THRESHOLD = 200_000
"""Objects after which a command that ends soon collects garbage. Imports make many objects and hardly any garbage."""


def main() -> NoReturn:
    """Run the command line and exit. A known error prints a sentence, a bug writes a report, an interrupt is quiet."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
        from echod.hooks.run import main as run_hook

        run_hook()
    if sys.argv[1:2] == ["merge-driver"] and not {"-h", "--help"}.intersection(sys.argv):
        import gc

        gc.disable()  # the process ends before its garbage matters, and git waits for it, once for each file
        from echod.sync.driver import main as merge

        code = merge(sys.argv[2:])
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)  # nothing is open, and tidying up the modules takes longer than reading the three files
    from echod.cli.output import SafeTextOutput, print_error, write_crash_report
    from echod.errors import EchodError, ExitCode

    _open_missing_streams()
    _escape_unencodable_output()
    sys.stdout, sys.stderr = SafeTextOutput.wrap(sys.stdout), SafeTextOutput.wrap(sys.stderr)
    # structlog imports rich, if installed, to format tracebacks that are never printed here, and asyncio, which imports
    # ssl. Only the MCP server's library needs that, and it takes four megabytes.
    sys.modules["rich"] = None  # type: ignore[assignment]
    if "mcp" not in sys.argv:
        sys.modules["ssl"] = None  # type: ignore[assignment]
    try:
        from echod.cli.app import run

        if not {"run", "mcp"}.intersection(sys.argv):
            import gc

            gc.set_threshold(_GC_THRESHOLD)
        code = run(sys.argv[1:])
        if sys.argv[1:2] in (["search"], ["status"]):
            sys.stderr.flush()
            os._exit(code)  # nothing is open, and tidying up the modules takes as long as the command
        sys.exit(code)
    except EchodError as error:
        print_error(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe. With stderr closed the interpreter does not complain at exit.
        sys.stderr.close()
        sys.exit(ExitCode.OK)
    except KeyboardInterrupt:
        sys.exit(INTERRUPT_EXIT_CODE)
    except Exception as error:  # noqa: BLE001  the last boundary: a bug is reported with the location of its traceback
        print_error(f"an unexpected {type(error).__name__}: this is a bug in echod. {write_crash_report(error)}")
        sys.exit(ExitCode.FAILED)


def _open_missing_streams() -> None:
    """Replace standard streams that the caller closed (`>&-`), so that no command needs to look for them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115  open until exit
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)  # keeps it open when another stream wraps its buffer


def _escape_unencodable_output() -> None:
    """Escape characters that the terminal's encoding lacks, so that titles and paths with them can be printed."""
    # Some locales already use UTF-8 that passes through the undecodable bytes of a path.
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and (out.encoding.lower(), out.errors) != ("utf-8", "surrogateescape"):
        codecs.register_error("echod-json-escape", _escape_as_json)
        out.reconfigure(errors="echod-json-escape")


def _escape_as_json(error: UnicodeError) -> tuple[str, int]:
    """Return unencodable characters in JSON notation, so that JSON output stays valid."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from json import dumps  # rarely needed, and a hook starts here

    return dumps(error.object[error.start : error.end])[1:-1], error.end
