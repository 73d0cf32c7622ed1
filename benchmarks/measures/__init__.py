"""One module a measure, each with `measure(quick) -> Section`."""
