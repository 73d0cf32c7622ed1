"""Other tools: what to install (`registry.py`), and one script each that runs there."""
