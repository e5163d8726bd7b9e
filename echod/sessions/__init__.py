"""Archive the conversations of agents: find transcripts, write archives, keep them consistent, and search them.

Read in this order: `roots` (where archives are), `journal` (how files there change, survive a kill, and are undone),
`receipts` (what is known of each archive), `transcripts` (finding transcripts), `lines` (reading them in bounded
memory), `ingest` (a transcript to a staged conversation), `archiver` (the decisions, and the archive itself),
`summaries` (the user's command), `rescue`, `report` (status and warnings) and `text_search`.

`echod.memory.conversation` decides how everything looks. Modules for other packages: `roots`, `journal`, `receipts`,
`transcripts`, `archiver`, `summaries`, `rescue`, `report`, `text_search`, `needs`, `curated`.
"""
