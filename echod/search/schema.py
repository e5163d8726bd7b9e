"""The tables of the search index, for its writer and for readers that use nothing but the standard library.

The index is derived. Deleting it costs a rebuild and nothing else, so its schema has no migrations: an index of another
version is deleted and built again. A reader opens the file read-only, compares `PRAGMA user_version` with
`SCHEMA_VERSION`, and treats every error as "there is no index".

| table | content |
|---|---|
| `collection` | A source of documents: a store, the solutions of a project, the conversations of a root. |
| `file` | A file of a collection, with the version that was read, and why it could not be read. |
| `document` | A text that can be found. It contains no secrets. |
| `citation` | A path that a document cites as evidence; `name` is the last part of the path in lower case. The other |
| | columns are the result of a check, which holds while `basis` and the version of `file` are the same. |
| `mention` | A command or error that an entry names, for the hooks (`echod.hooks.mentions`). |
| `passage` | Full-text index. A row id is the document's id times `PASSAGES_PER_DOCUMENT`, plus the passage's number. |
| `word` | All words of at least four characters, with the number of documents. |

Passage 0 is the title, the others are the text. A document's id is its collection's id times
`DOCUMENTS_PER_COLLECTION`, plus a number, so that a query of one project reads only the rows of that project.
"""

from __future__ import annotations

from typing import Final

from echod import __version__

SCHEMA_VERSION: Final = 1
"""`PRAGMA user_version` of an index with these tables."""

BUILD: Final = f"{SCHEMA_VERSION}/{__version__}"
"""The writer of the documents. Another version of echod may read files differently, so it builds the index again."""

DOCUMENTS_PER_COLLECTION: Final = 1 << 24
PASSAGE_BITS: Final = 12
"""A row id without these last bits is the id of its document."""
PASSAGES_PER_DOCUMENT: Final = 1 << PASSAGE_BITS

_TOKENIZER: Final = "porter unicode61 remove_diacritics 0 categories 'L* N* M* C*'"

CREATE_STATEMENTS: Final = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE collection (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        scope TEXT NOT NULL,
        project TEXT NOT NULL,
        store TEXT NOT NULL,
        indexed_at REAL NOT NULL DEFAULT 0,
        next_document INTEGER NOT NULL DEFAULT 1,
        documents INTEGER NOT NULL DEFAULT 0,
        passages INTEGER NOT NULL DEFAULT 0
    )
    """,
    """
    CREATE TABLE file (
        id INTEGER PRIMARY KEY,
        collection INTEGER NOT NULL,
        path TEXT NOT NULL,
        inode INTEGER NOT NULL,
        size INTEGER NOT NULL,
        modified_ns INTEGER NOT NULL,
        changed_ns INTEGER NOT NULL,
        settled INTEGER NOT NULL,
        problem TEXT,
        UNIQUE (collection, path)
    )
    """,
    """
    CREATE TABLE document (
        id INTEGER PRIMARY KEY,
        file INTEGER NOT NULL,
        entry TEXT NOT NULL,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        body TEXT NOT NULL,
        line INTEGER NOT NULL,
        role TEXT NOT NULL,
        layer TEXT NOT NULL,
        category TEXT NOT NULL,
        domain TEXT NOT NULL,
        date TEXT NOT NULL,
        source TEXT NOT NULL,
        confidence REAL,
        suspicious INTEGER NOT NULL,
        digest TEXT NOT NULL,
        passages INTEGER NOT NULL
    )
    """,
    "CREATE INDEX document_file ON document (file)",
    "CREATE INDEX document_entry ON document (entry)",
    """
    CREATE TABLE citation (
        document INTEGER NOT NULL,
        cite TEXT NOT NULL,
        path TEXT NOT NULL,
        name TEXT NOT NULL,
        state TEXT,
        at TEXT,
        basis TEXT,
        file TEXT,
        inode INTEGER,
        size INTEGER,
        modified_ns INTEGER,
        changed_ns INTEGER
    )
    """,
    "CREATE INDEX citation_document ON citation (document)",
    "CREATE INDEX citation_name ON citation (name, document)",
    "CREATE TABLE mention (document INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL)",
    "CREATE INDEX mention_document ON mention (document)",
    "CREATE INDEX mention_key ON mention (key, document)",
    # Neither positions nor columns are stored: ranking needs only the rows of each word, and the index is half as big.
    f'CREATE VIRTUAL TABLE passage USING fts5(words, tokenize="{_TOKENIZER}", detail=none, columnsize=0)',
    "CREATE TABLE word (word TEXT PRIMARY KEY, documents INTEGER NOT NULL) WITHOUT ROWID",
)
"""Run in one transaction on an empty file."""
