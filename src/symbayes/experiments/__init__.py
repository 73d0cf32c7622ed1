"""The experiments of the paper, done again: `symbayes reproduce`."""
