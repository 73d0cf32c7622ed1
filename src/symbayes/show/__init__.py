"""What a user sees: progress, plots, the report, notebooks, ArviZ."""
