"""The best coefficients and constants of formulas whose structure is given."""
