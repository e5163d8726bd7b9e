"""The propose job: ask the user's own command which entries could be merged or named better.

`policy.propose_command` is off by default, and only the user's own settings can set it. The command runs before the
role is locked. Its answer changes nothing: proposals that `echod.memory.proposals` accepts become questions in the
role's journal, which `echod review` lists. `echod.jobs.answer_review` carries out those that the user accepts.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from datetime import date

from echod.clock import local_date
from echod.inspection.inspect import record_entries
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    JobResources,
    Proposal,
    append_pruned,
    change_set,
    parse_memory,
    plan_and_commit,
    report_only,
    write_memory,
)
from echod.log import get_logger
from echod.memory.document import parse
from echod.memory.model import Block, Document
from echod.memory.policy.manual import EditRefusal
from echod.memory.proposals import (
    CheckedProposals,
    ProposalAnswerError,
    ProposedEntry,
    apply_proposal,
    find_candidates,
    proposal_key,
    proposal_prompt,
    read_proposals,
)
from echod.memory.text import pluralize
from echod.runtime.system import UserCommandError
from echod.state.jobs import JobKind
from echod.store.engine import RoleView
from echod.store.journal.ledger import PROPOSAL, Question
from echod.store.layout import Role

log = get_logger(__name__)

_MIN_CANDIDATES = 2

Proposer = Callable[[str], str]
"""Returns the answer of the user's command to a prompt. Raises `UserCommandError`."""


def run(resources: JobResources, role: Role, proposer: Proposer | None) -> JobOutcome:
    """Ask for proposals about a role's memory file, and record those that count as questions to the user."""
    if proposer is None:
        return JobDone("nothing was done: policy.propose_command is not set", changed=False)
    if not resources.allow_writes:
        return report_only("the command of policy.propose_command would be asked")
    with resources.engine.open_read_only(role) as session:
        memory = session.read().memory.data
    document = None if memory is None else parse(memory)
    if not isinstance(document, Document):
        return JobDone("nothing was done: there is no readable memory file", changed=False)
    now = resources.clock()
    candidates = find_candidates(role.name, document, resources.entries.pinned_ids(role.store.key, local_date(now)))
    if len(candidates) < _MIN_CANDIDATES:
        return JobDone("nothing was done: there are no learnings to merge", changed=False)
    try:
        checked = read_proposals(proposer(proposal_prompt(candidates, secrets.token_hex(16))), candidates)
    except (UserCommandError, ProposalAnswerError) as error:
        return JobBlocked(f"the command of policy.propose_command made no proposals: {error}")
    for reason in checked.refused:
        log.info("proposal_refused", role=str(role.path), reason=reason)
    if checked.accepted:
        with resources.open_role(role) as context:
            context.session.record_questions(_questions(role, checked, candidates, now))
    refused = f", {len(checked.refused)} refused" if checked.refused else ""
    return JobDone(f"{pluralize(len(checked.accepted), 'proposal')} for you to review{refused}", changed=False)


def _questions(
    role: Role, checked: CheckedProposals, candidates: Mapping[str, Block], now: float
) -> Iterator[Question]:
    for proposed in checked.accepted:
        digests = [hashlib.sha256(candidates[entry].body.encode()).hexdigest() for entry in proposed.entries]
        target = json.dumps({**proposed._asdict(), "digests": digests})
        yield Question(now, PROPOSAL, role.name, proposal_key(proposed), proposed.entries[0], target, "")


def accept(context: JobContext, proposed: ProposedEntry) -> JobOutcome:
    """Write the proposed entry, and archive those that it replaces. References are copied to it."""

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        document = parse_memory(view)
        if isinstance(document, JobBlocked):
            return document
        applied = apply_proposal(view.role.name, document, proposed, today)
        if isinstance(applied, EditRefusal):
            return JobBlocked(applied.reason)

        def record() -> None:
            record_entries(context.entries, view.role, applied.document, today)
            merged = dict.fromkeys(proposed.entries, applied.id)
            context.entries.copy_references(view.role.store.key, merged)

        appends = append_pruned(view.role, today, applied.archived, context.job_id)
        summary = f"{pluralize(len(proposed.entries), 'entry', 'entries')} replaced by {applied.id}"
        writes = [write_memory(view, applied.document.render())]
        return Proposal(change_set(view, JobKind.REVIEW, summary, writes, appends=appends), after_commit=record)

    return plan_and_commit(context, planner)
