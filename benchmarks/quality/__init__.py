"""Whether formulas are found: symbayes and its peers on the same problems; see `README.md`."""
