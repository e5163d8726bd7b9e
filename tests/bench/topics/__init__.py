"""One module for each thing that is measured, each with a function `measure(space) -> Figures`."""
