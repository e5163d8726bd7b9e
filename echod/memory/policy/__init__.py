"""The policies beyond consolidation: what becomes of entries. docs/lifecycle.md tells it to users.

Values in, values out: a document, `Facts` (what is known about its entries and the project), a `Policy` (every number)
and today's date give a plan. A dry run shows a plan, a job carries out the very same one.

Read in this order: `memory.numbers`, `facts`, `score`, `standing` (how each entry stands today), `expiry` and
`pressure` (in which order entries go), `condense`, `desk` and `prune` (what goes today), `explanation`, `promote`,
`compress`, `archive` (the text of the archive and back).

For the jobs and commands on top:

- `plan_prune(role, document, facts, policy, today, archive=...) -> PrunePlan`: write `memory` if it is not None, append
  `archive_text(plan.archived, job)` to `plan.archive`, and add `plan.knowledge` with `knowledge.with_blocks`. Ask
  `archive_name(year, sizes)` for `archive` beforehand. `over_limit` is a review item; prune again tomorrow only if
  `over_limit.another_day_helps`. Add `inscribed_archived` to what was archived today and hand it back as
  `Facts.inscribed_archived_today` the next time.
- `plan_compress(role, document, facts, policy, today) -> CompressPlan`: the document is the knowledge file; write
  `knowledge`, archive `archived`.
- `plan_promotion(role, document, facts, policy, today) -> Promotion`: write `memory`; `held` are review items.
- `explain(role, document, id, facts, policy, today) -> Explanation | None`: for `explain ENTRY`; `--as-of` is `today`.
- `read_archive(data) -> Archive`: for `restore`; an entry's `text` is what to put back.

Ids of exact repeats can change when one of them goes. `PrunePlan.renumbered` says which, so that references and pins
move along; `likeness.recognise` cannot tell by itself which of two equal entries went.
"""

from __future__ import annotations

from echod.memory.policy.archive import (
    ARCHIVE_LIMIT,
    Archive,
    ArchivedEntry,
    Damaged,
    archive_name,
    archive_text,
    read_archive,
)
from echod.memory.policy.compress import CompressPlan, plan_compress
from echod.memory.policy.explanation import Explanation, RuleView, explain
from echod.memory.policy.promote import Held, Promoted, Promotion, plan_promotion
from echod.memory.policy.prune import EntryAction, OverLimit, PrunePlan, plan_prune
from echod.memory.policy.scoring import Facts, History, Terms
from echod.memory.policy_model import DEFAULT_POLICY, Action, Policy, Rule

__all__ = [
    "ARCHIVE_LIMIT",
    "DEFAULT_POLICY",
    "Action",
    "Archive",
    "ArchivedEntry",
    "CompressPlan",
    "Damaged",
    "EntryAction",
    "Explanation",
    "Facts",
    "Held",
    "History",
    "OverLimit",
    "Policy",
    "Promoted",
    "Promotion",
    "PrunePlan",
    "Rule",
    "RuleView",
    "Terms",
    "archive_name",
    "archive_text",
    "explain",
    "plan_compress",
    "plan_promotion",
    "plan_prune",
    "read_archive",
]
