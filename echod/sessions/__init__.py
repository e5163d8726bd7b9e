"""Archive the conversations of agents: find transcripts, write archives, keep them consistent, and search them.

Read in this order: `roots` (where archives are), `journal` (how files there change, survive a kill, and are undone),
`receipts` (the origin of each archive), `dialects` and `transcripts` (finding transcripts, or what is left of
them), `ingest` (a transcript to a staged conversation), `archiver` and `archive_writer` (the decisions, and the
archive itself), `needs` (whose conversations are archived, and which of them are due), `forget`, `report` and
`text_search`.

`echod.memory.conversation` decides how everything looks. Nothing is exported here, since most commands need one module.
"""
