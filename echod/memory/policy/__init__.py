"""The policies beyond consolidation: prune, promote, compress, and the user's own edits (docs/lifecycle.md).

Policies map values to values: a document, `Facts` (history of its entries and of the project), `PolicySettings` (every
number) and today's date make a plan. A dry run shows the plan that the job then carries out.

Read in this order: `policy_model` (numbers and rules), `scoring` (the status of each entry today, and expiry),
`pressure` (the steps of a file over its limit), `prune` (and compression), `explanation`, `manual` (and promotion),
`draft`. `memory/archive.py` has the format of the archive, `memory/shorten.py` shortens one entry, and
`memory/specificity.py` judges a text.

For jobs and commands:

- `plan_prune(role, document, facts, policy, today, archive=...) -> PrunePlan`: write `memory` if it is not None, append
  `archive.render_archived_entries(plan.archived, job)` to `plan.archive`, and add `plan.knowledge` with
  `knowledge.with_blocks`. `archive` comes from `select_archive_file(year, sizes)`. `over_limit` becomes a review item;
  prune again tomorrow only if `over_limit.can_shrink_tomorrow`. Add `learnings_archived` to today's count and pass it
  the next time as `Facts.learnings_archived_today`.
- `plan_compress`: the document is the knowledge file; write `knowledge`, archive `archived`.
- `plan_promotion`: write `memory`; `blocked` are review items.
- `build_explanation`: for `explain ENTRY`; `--as-of` is `today`.
- `read_archive`: for `restore`; an entry's `text` is the text to restore.

Ids of exact repeats can change when one of them is removed. `PrunePlan.id_changes` lists the changes, so that
references and pins follow. `entry_matching.match_entries` alone cannot know which of two equal entries was removed.
"""

from __future__ import annotations

from echod.memory.policy.explanation import Explanation, RuleOutcome, build_explanation
from echod.memory.policy.manual import (
    BlockedPromotion,
    EditRefusal,
    PromotedEntry,
    PromotionPlan,
    Removal,
    ResetPlan,
    Restoration,
    change_layer,
    plan_promotion,
    plan_reset,
    remove_entries,
    restore_entry,
)
from echod.memory.policy.prune import CompressPlan, EntryAction, OverLimit, PrunePlan, plan_compress, plan_prune
from echod.memory.policy.scoring import Facts, History

__all__ = [
    "BlockedPromotion", "CompressPlan", "EditRefusal", "EntryAction", "Explanation",
    "Facts", "History", "OverLimit", "PromotedEntry", "PromotionPlan",
    "PrunePlan", "Removal", "ResetPlan", "Restoration", "RuleOutcome",
    "build_explanation", "change_layer", "plan_compress", "plan_promotion", "plan_prune", "plan_reset",
    "remove_entries", "restore_entry",
]  # fmt: skip
