"""From draws to answers: formulas with probabilities, predictions, diagnostics, the verdict."""
