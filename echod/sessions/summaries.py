"""Ask the user's own command for a summary of a conversation: a prompt, and one JSON object back.

The answer is searched for secrets like everything else. `echod.runtime.user_command` runs it. A module of its own,
so that commands that only list archives do not load it.
"""

from __future__ import annotations

from collections.abc import Callable

from echod.memory.conversation.archive import ArchiveSummary
from echod.memory.conversation.digest import ConversationDigest
from echod.memory.conversation.summary import SummaryAnswerError, parse_summary, summary_prompt
from echod.runtime.user_command import UserCommandError
from echod.sessions.ingest import without_secrets

Summarizer = Callable[[str], str]
"""Returns the answer to a prompt. Raises `UserCommandError`."""


def summarize_digest(
    summarizer: Summarizer, digest: ConversationDigest
) -> tuple[ArchiveSummary, tuple[str, ...]] | str:
    """Return the summary and topics of a conversation by the user's command, or why there is none."""
    try:
        found = parse_summary(summarizer(summary_prompt(digest.condensed)))
    except (UserCommandError, SummaryAnswerError) as error:
        return str(error)
    summary = ArchiveSummary(
        without_secrets(found.text).text,
        tuple(without_secrets(text).text for text in found.decisions),
        tuple(without_secrets(text).text for text in found.actions),
    )
    return summary, tuple(without_secrets(topic).text for topic in found.topics)
