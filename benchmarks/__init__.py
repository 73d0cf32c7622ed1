"""Speed, side by side with other tools. Not shipped: run from the repository, `make bench`."""
