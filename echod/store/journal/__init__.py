"""The durable record of every commit: intents, results, blobs, the ledger and the undo index.

Modules for other packages: `files`, `journal`, `ledger`, `records`, `retention`.
"""
