"""The door: every `echod` command comes in here and every error leaves here, once, as a sentence and an exit code.

Nothing heavy is imported at the top, so that a command pays only for what it needs; an agent's hook, which comes in
here too, for nothing at all.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPT_EXIT_CODE = 130


def main() -> NoReturn:
    """Run the command line and exit: a known error is a sentence, a bug is a report, an interrupt is quiet."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
        from echod.hooks.run import main as run_hook

        run_hook()
    from echod.errors import EchodError, ExitCode

    _escape_unencodable_output()
    try:
        _dispatch(sys.argv[1:])
    except EchodError as error:
        _print_error(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; closing stderr too keeps the interpreter from complaining at exit.
        sys.stderr.close()
        sys.exit(ExitCode.OK)
    except KeyboardInterrupt:
        sys.exit(INTERRUPT_EXIT_CODE)
    except Exception as error:  # noqa: BLE001  (the last boundary: a bug is told as one, with where the report is)
        _print_error(f"an unexpected {type(error).__name__}: this is a bug in echod. {_write_crash_report(error)}")
        sys.exit(ExitCode.FAILED)
    sys.exit(ExitCode.OK)


def _escape_unencodable_output() -> None:
    """Titles and paths may hold what a terminal's encoding has no letter for; that is no reason to show nothing."""
    import codecs
    import io

    # UTF-8 that passes on the odd byte of a path is what some locales set by themselves.
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and (out.encoding.lower(), out.errors) != ("utf-8", "surrogateescape"):
        codecs.register_error("echod-json-escape", _escape_as_json)
        out.reconfigure(errors="echod-json-escape")


def _escape_as_json(error: UnicodeError) -> tuple[str, int]:
    """What cannot be printed, as JSON writes it, so that what scripts read stays JSON."""
    import json

    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _dispatch(arguments: list[str]) -> None:
    """Do what was asked.

    Two commands do without the tree of all the others, whose loading costs more than they do: `status`, since it is
    asked so often, and `run`, since the service would keep it in memory for as long as it lives.
    """
    # structlog loads rich where there is one, for tracebacks that are never printed here.
    sys.modules["rich"] = None  # type: ignore[assignment]
    if arguments in (["status"], ["status", "--json"]):
        from echod.cli.commands.status import show_status
        from echod.cli.context import CommandContext

        show_status(CommandContext.from_process(), as_json="--json" in arguments)
    if arguments == ["run"]:
        from echod.cli.commands.run import run_service
        from echod.cli.context import CommandContext

        run_service(CommandContext.from_process())
        return
    from echod.cli.app import run_command_line

    sys.exit(run_command_line(arguments))


def _print_error(message: str) -> None:
    """Print an error: one line for scripts, wrapped for a person at a terminal."""
    from echod.cli.output import wrap

    text = f"echod: {message}"
    if sys.stderr.isatty():
        text = "\n".join(wrap(line) for line in text.splitlines())
    sys.stderr.write(f"{text}\n")


def _write_crash_report(error: Exception) -> str:
    """Write the traceback, without any variable's value, into the log; where it is, in a sentence."""
    import os
    import traceback

    from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE, paths_from_environment

    text = "".join(traceback.format_exception(error))
    try:
        log = paths_from_environment(os.environ).log_file
        log.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE_MODE), "a") as file:
            file.write(text)
    except Exception:  # noqa: BLE001  (where even that fails, the terminal is all there is)
        sys.stderr.write(text)
        return "The report is above."
    return f"The report is at the end of {log}."
