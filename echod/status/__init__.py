"""The status report: `collect` composes it, with the doc packs of `packs`."""
