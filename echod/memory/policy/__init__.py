"""The policies beyond consolidation: what becomes of entries. docs/lifecycle.md tells it to users.

Values in, values out: a document, `Facts` (what is known about its entries and the project), a `PolicySettings`
(every number)
and today's date give a plan. A dry run shows a plan, a job carries out the very same one.

Read in this order: `memory.numbers`, `facts`, `score`, `standing` (how each entry stands today), `expiry` and
`pressure` (in which order entries go), `condense`, `desk` and `prune` (what goes today), `explanation`, `promote`,
`compress`, `archive` (the text of the archive and back).

For the jobs and commands on top:

- `plan_prune(role, document, facts, policy, today, archive=...) -> PrunePlan`: write `memory` if it is not None, append
  `render_archived_entries(plan.archived, job)` to `plan.archive`, and add `plan.knowledge` with
  `knowledge.with_blocks`. Ask
  `select_archive_file(year, sizes)` for `archive` beforehand. `measure_over_limit` is a review item; prune again
  tomorrow only if
  `measure_over_limit.another_day_helps`. Add `inscribed_archived` to what was archived today and hand it back as
  `Facts.inscribed_archived_today` the next time.
- `plan_compress(role, document, facts, policy, today) -> CompressPlan`: the document is the knowledge file; write
  `knowledge`, archive `archived`.
- `plan_promotion(role, document, facts, policy, today) -> Promotion`: write `memory`; `blocked` are review items.
- `build_explanation(role, document, id, facts, policy, today) -> Explanation | None`: for `explain ENTRY`; `--as-of`
is `today`.
- `read_archive(data) -> Archive`: for `restore`; an entry's `text` is what to put back.

Ids of exact repeats can change when one of them goes. `PrunePlan.renumbered` says which, so that references and pins
move along; `entry_matching.match_entries` cannot tell by itself which of two equal entries went.
"""

from __future__ import annotations

from echod.memory.policy.archive import (
    MAX_ARCHIVE_BYTES,
    Archive,
    ArchivedEntry,
    DamagedArchiveEntry,
    read_archive,
    render_archived_entries,
    select_archive_file,
)
from echod.memory.policy.compress import CompressPlan, plan_compress
from echod.memory.policy.explanation import Explanation, RuleOutcome, build_explanation
from echod.memory.policy.promote import BlockedPromotion, PromotedEntry, PromotionPlan, plan_promotion
from echod.memory.policy.prune import EntryAction, OverLimit, PrunePlan, plan_prune
from echod.memory.policy.scoring import Facts, History, ScoreTerms
from echod.memory.policy_model import DEFAULT_POLICY, PolicySettings, PruneAction, Rule

__all__ = [
    "DEFAULT_POLICY",
    "MAX_ARCHIVE_BYTES",
    "Archive",
    "ArchivedEntry",
    "BlockedPromotion",
    "CompressPlan",
    "DamagedArchiveEntry",
    "EntryAction",
    "Explanation",
    "Facts",
    "History",
    "OverLimit",
    "PolicySettings",
    "PromotedEntry",
    "PromotionPlan",
    "PruneAction",
    "PrunePlan",
    "Rule",
    "RuleOutcome",
    "ScoreTerms",
    "build_explanation",
    "plan_compress",
    "plan_promotion",
    "plan_prune",
    "read_archive",
    "render_archived_entries",
    "select_archive_file",
]
