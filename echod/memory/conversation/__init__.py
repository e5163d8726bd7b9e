"""Conversations of agents as Markdown: transcript records -> items -> the bytes of an archive. Pure.

Read in this order: `model` (the values), `claude`, `host` and `codex` (records of three sources), `digest` (summary,
topics and tags of a conversation as it passes, and the answer of a model), `archive` (a whole archive file), `index`
(ARCHIVE.md and EPHEMERAL.md) and `distill` (MEMORY.md).

Modules for other packages: `model`, `claude`, `host`, `codex`, `digest`, `archive`, `index`, `distill`.
"""
