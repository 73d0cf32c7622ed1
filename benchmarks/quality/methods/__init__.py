"""One script a method, run in its own environment; `registry.py` says how each is set."""
