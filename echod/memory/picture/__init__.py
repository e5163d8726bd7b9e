"""A picture of a memory over time: the data, and their drawing for a browser.

`series` makes periods of sightings and movements, `page` draws them. `echod picture` draws them in the terminal.

Modules for other packages: `page`, `series`.
"""
