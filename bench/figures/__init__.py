"""One module per figure: `rows(quick)` measures and returns its rows of the table."""
