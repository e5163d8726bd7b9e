"""A picture of a memory over time: the data, and their drawings for a terminal and for a browser.

`series` makes periods of sightings and movements, `terminal` and `page` draw them.

Modules for other packages: `page`, `series`, `terminal`.
"""
