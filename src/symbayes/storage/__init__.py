"""Files: models and checkpoints, written whole or not at all, and read without trusting them."""
