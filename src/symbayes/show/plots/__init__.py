"""Drawing: one file per kind of plot. `symbayes.plots` has the public names."""
