"""One HTML page about a fitted model."""
