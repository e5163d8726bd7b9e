"""Find documents in an index that is never stale: entries, learnings, archives, doc packs, solutions, conversations.

To make another kind of text searchable, implement `DocumentSource` (in `documents`: five constants and two methods) for
one place on the disk, and add it to `app/search.py`. The index does the rest: it reads what changed, removes secrets,
and forgets what is gone. Neither ranking nor commands know where documents come from.

Read in this order: `documents` (what is searched), `schema` (the tables, also for readers without this package),
`index` and `writer` (open it, and follow the files), `words` and `ranking` (from a query to scores), `finder` (answers
a search).

Modules for other packages: `artifacts`, `brief`, `documents`, `finder`, `index`, `schema`, `sources`, `words`.
"""
