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

    _print_what_there_is()
    try:
        _run(sys.argv[1:])
    except EchodError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; closing stderr too keeps the interpreter from complaining at exit.
        sys.stderr.close()
        sys.exit(Exit.OK)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001  (the last boundary: a bug is told as one, with where the report is)
        _say(f"an unexpected {type(error).__name__}: this is a bug in echod. {_report(error)}")
        sys.exit(Exit.FAILED)
    sys.exit(Exit.OK)


def _print_what_there_is() -> None:
    """Titles and paths may hold what a terminal's encoding has no letter for; that is no reason to show nothing."""
    import codecs
    import io

    # UTF-8 that passes on the odd byte of a path is what some locales set by themselves.
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and (out.encoding.lower(), out.errors) != ("utf-8", "surrogateescape"):
        codecs.register_error("echod-escaped", _escaped)
        out.reconfigure(errors="echod-escaped")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """What cannot be printed, as JSON writes it, so that what scripts read stays JSON."""
    import json

    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _run(words: list[str]) -> None:
    """Do what was asked.

    Two commands do without the tree of all the others, whose loading costs more than they do: `status`, since it is
    asked so often, and `run`, since the service would keep it in memory for as long as it lives.
    """
    # structlog loads rich where there is one, for tracebacks that are never printed here.
    sys.modules["rich"] = None  # type: ignore[assignment]
    if words in (["status"], ["status", "--json"]):
        from echod.cli.shell import Shell
        from echod.cli.status import show_status

        show_status(Shell.here(), as_json="--json" in words)
    if words == ["run"]:
        from echod.cli.serve import serve
        from echod.cli.shell import Shell

        serve(Shell.here())
        return
    from echod.cli.app import run

    sys.exit(run(words))


def _say(sentences: str) -> None:
    """Print an error: one line for scripts, wrapped for a person at a terminal."""
    from echod.cli.text import paragraph

    text = f"echod: {sentences}"
    if sys.stderr.isatty():
        text = "\n".join(paragraph(line) for line in text.splitlines())
    sys.stderr.write(f"{text}\n")


def _report(error: Exception) -> str:
    """Write the traceback, without any variable's value, into the log; where it is, in a sentence."""
    import os
    import traceback

    from echod.paths import PRIVATE_DIR, PRIVATE_FILE, from_environment

    text = "".join(traceback.format_exception(error))
    try:
        log = from_environment(os.environ).log_file
        log.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE), "a") as file:
            file.write(text)
    except Exception:  # noqa: BLE001  (where even that fails, the terminal is all there is)
        sys.stderr.write(text)
        return "The report is above."
    return f"The report is at the end of {log}."
