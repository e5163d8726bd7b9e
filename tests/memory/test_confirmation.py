"""The same lesson in other roles confirms a learning. Nothing is merged because of it."""

from __future__ import annotations

from echod.memory.specificity import find_confirmations
from tests.memory.policy.samples import entry, entry_ids_by_title, memory_document

POOL = "Close `db_pool` before `os.fork()`, because workers share the sockets of the parent."
POOL_IN_OTHER_WORDS = "Forked workers share sockets: `os.fork()` needs a closed `db_pool`."
OTHER = "`db_pool` has ten connections at most, which is plenty for the admin pages."


def test_the_same_lesson_in_another_role_confirms_it() -> None:
    own = memory_document(entry("pool", learning=POOL, lines=7), entry("other", learning=OTHER, lines=7))
    planner = memory_document(entry("forking", learning=POOL_IN_OTHER_WORDS, lines=7))

    found = find_confirmations("reviewer", own, {"planner": planner})

    assert found == {entry_ids_by_title(own)["pool"]: frozenset({"planner"})}


def test_the_same_lesson_again_in_the_same_role_confirms_both() -> None:
    own = memory_document(entry("pool", learning=POOL, lines=7), entry("again", learning=POOL_IN_OTHER_WORDS, lines=7))

    found = find_confirmations("reviewer", own, {})

    assert found == dict.fromkeys(entry_ids_by_title(own).values(), frozenset({"reviewer"}))


def test_a_name_that_many_share_confirms_nothing() -> None:
    many = [
        entry(f"e{n}", learning=f"`db_pool` and `os.fork()` came up in round {n} again.", lines=7) for n in range(9)
    ]

    assert find_confirmations("reviewer", memory_document(*many), {}) == {}


def test_observations_confirm_nothing() -> None:
    own = memory_document(entry("pool", learning=POOL, lines=7))
    noise = memory_document(entry("done", "observations", learning=POOL, lines=7))

    assert find_confirmations("reviewer", own, {"workers": noise}) == {}
