"""What a user holds in hand: operators, expressions, formulas, and every way to write them."""
