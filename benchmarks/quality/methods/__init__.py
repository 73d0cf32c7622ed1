"""One script per method, run in its own environment; `registry.py` has the settings of each."""
