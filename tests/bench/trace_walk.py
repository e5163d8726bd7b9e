"""Run a command of echod in this process and print, as JSON, the modules whose functions were called.

Only called functions count, not imports, class bodies or comprehensions' owners: a reader who follows the program has to
open exactly these modules. Usage: python -m tests.bench.trace_walk OUTPUT COMMAND [ARGUMENT]...
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import sys
import threading
from pathlib import Path
from types import FrameType

import echod

_PACKAGE = str(Path(echod.__file__).parent)


def main() -> None:
    """Trace `echod` with the given arguments until the process exits."""
    output, arguments = Path(sys.argv[1]), sys.argv[2:]
    files: set[str] = set()

    def trace(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith(_PACKAGE) and not code.co_name.startswith("<") and code.co_flags & 2:
                files.add(code.co_filename)

    atexit.register(lambda: output.write_text(json.dumps(sorted(files))))
    for module in pkgutil.walk_packages(echod.__path__, "echod."):  # before the trace: imports are not a walk
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    from echod.cli.main import main as echod_main

    os._exit = sys.exit  # type: ignore[assignment]  # a short command ends its process at once
    sys.argv = ["echod", *arguments]
    threading.setprofile(trace)
    sys.setprofile(trace)
    echod_main()


if __name__ == "__main__":
    main()
