"""What `make bench` measures: every promise in numbers, in one table, in under ten minutes.

`topics/` has one module for each thing that is measured; `figures.py` defines figures, `report.py` prints them.
"""
