"""Evidence: the places in files that an entry cites, and whether they still are what they were.

Pure: contents in, states out. `echod.evidence` reads the files and git's objects. Read in this order: `fingerprint`
(what an entry cites, and what is kept of the lines), `compare` (the state of a citation in a present file).

Modules for other packages: `compare`, `fingerprint`.
"""
