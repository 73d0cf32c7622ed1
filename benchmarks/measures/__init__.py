"""One module per measure, each with `measure(quick) -> Section`."""
