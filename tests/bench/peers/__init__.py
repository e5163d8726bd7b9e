"""`make bench-peers`: the same work done by echod and by other programs for the memory of agents, in one run.

An optional lane. `install.py` makes an environment for each program, `programs.py` knows how each is used by its own
documentation, `work.py` measures, and `__main__.py` prints the table.
"""
