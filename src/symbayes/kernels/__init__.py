"""Compiled code: NumPy and Numba only, and nothing of the package above."""
