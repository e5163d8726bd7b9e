"""The same files give the same plans in every process, whatever order its sets and dictionaries have."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.life.files import HEAD, TODAY, grown, learning

_PLANS = """
import hashlib, sys
from datetime import date
from echod.memory.document import parse
from echod.memory.knowledge import with_blocks
from echod.memory.policy import Facts, Policy, archive_text, plan_compress, plan_prune

today, files = date.fromisoformat(sys.argv[1]), sys.stdin.buffer.read().split(b"\\0")
pruned = plan_prune("reviewer", parse(files[0]), Facts(), Policy(), today)
compressed = plan_compress("reviewer", parse(files[1]), Facts(), Policy(), today)
assert pruned.memory and pruned.knowledge and compressed.knowledge
said = [repr(pruned), repr(compressed), repr(with_blocks("reviewer", None, pruned.knowledge))]
said.append(archive_text(pruned.archived, 1).decode())
print(hashlib.sha256("".join(said).encode()).hexdigest())
"""


def test_plans_do_not_depend_on_the_hash_seed_of_the_process() -> None:
    knowledge = HEAD + "".join(learning(f"learning {n % 9} of the {n % 7}", age=n, lines=9) for n in range(60))

    said = {
        subprocess.run(
            [sys.executable, "-c", _PLANS, str(TODAY)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            input=f"{grown()}\0{knowledge}".encode(),
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert len(said) == 1
