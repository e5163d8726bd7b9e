"""The status report: `collect` composes it, with the doc packs and conversations of `sections`."""
