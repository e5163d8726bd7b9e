"""What `make bench` measures: every promise in numbers, in one table, in under ten minutes.

`topics/` has one module for each thing that is measured; `figures.py` says what a figure is, `report.py` shows them.
"""
