"""The same files give the same plans in every process, in any order of its sets and dictionaries."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.life.files import MEMORY_HEADER, TODAY, grown_memory, learning_text

_PLANS = """
import hashlib, sys
from datetime import date
from echod.memory.document import parse
from echod.memory.knowledge import with_blocks
from echod.memory.archive import render_archived_entries
from echod.memory.policy import Facts, plan_compress, plan_prune
from echod.memory.policy_model import PolicySettings

today, files = date.fromisoformat(sys.argv[1]), sys.stdin.buffer.read().split(b"\\0")
pruned = plan_prune("reviewer", parse(files[0]), Facts(), PolicySettings(memory_line_limit=40), today)
compressed = plan_compress("reviewer", parse(files[1]), Facts(), PolicySettings(), today)
assert pruned.memory and pruned.knowledge and compressed.knowledge
said = [repr(pruned), repr(compressed), repr(with_blocks("reviewer", None, pruned.knowledge))]
said.append(render_archived_entries(pruned.archived, 1).decode())
print(hashlib.sha256("".join(said).encode()).hexdigest())
"""


def test_plans_do_not_depend_on_the_hash_seed_of_the_process() -> None:
    knowledge = MEMORY_HEADER + "".join(
        learning_text(f"learning {n % 9} of the {n % 7}", age=n, lines=9) for n in range(60)
    )

    digests = {
        subprocess.run(
            [sys.executable, "-c", _PLANS, str(TODAY)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            input=f"{grown_memory()}\0{knowledge}".encode(),
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    assert len(digests) == 1
