"""Boilerplate, and learnings that sound like it: a greeting may stay, a learning must."""

from __future__ import annotations

import pytest

from echod.memory.findings.sections import is_boilerplate


@pytest.mark.parametrize(
    "text",
    [
        "Here are my findings:",
        "Here is what I found while reviewing the branch:",
        "Here's what I found during the review:",
        "Sure! Here are the key learnings from this session.",
        "Below are the patterns and learnings I noticed:",
        "The following learnings were identified during the review:",
        "I have completed the review of the payment module. Here are my findings:",
        "I've documented the findings below.",
        "Let me know if you need anything else!",
        "Please let me know if you have any questions or would like more details.",
        "Feel free to ask if you have questions.",
        "Hope this helps.",
        "That's all. Thanks!",
        "*No echoes yet.*",
        "No findings.",
        "End of findings",
        "Would you like me to continue?",
        "I\u2019m happy to elaborate.",
    ],
)
def test_this_is_not_a_finding(text: str) -> None:
    assert is_boilerplate(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Here are my findings: sessions must be awaited.",
        "Here is the fix for the pool.",
        "Great care is needed with the pool.",
        "Done, but the cache was stale.",
        "Let me know if `close()` is wrong.",
        "Feel free to use the cache directly.",
        "I have completed the migration, which fails without a lock.",
        "I've found that the pool leaks.",
        "The findings of the audit were wrong.",
        "That's all the retries there are: 3.",
        "Thanks to the lock nothing is lost.",
        "No learnings survive a restart without a flush.",
        "These will be lost on restart.",
        "Sure, but only in tests.",
    ],
)
def test_this_may_be_a_learning(text: str) -> None:
    assert not is_boilerplate(text)
