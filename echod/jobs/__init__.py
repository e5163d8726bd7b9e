"""One module per job kind: look at a store, return a change set and a report. The daemon and commands run the same."""
