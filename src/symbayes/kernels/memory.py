"""Memory that compiled loops work in."""

import math

import numpy as np

# Bytes that a core fetches at a time.
_LINE = 64


def zeros(shape, dtype=np.float64):
    """Return an array of zeros in lines of its own.

    Vector instructions are slower on numbers that lie across two lines, and so are two threads
    that write to the same line, though they write to different arrays.
    """
    dtype = np.dtype(dtype)
    size = (math.prod(shape) if isinstance(shape, tuple) else shape) * dtype.itemsize
    room = np.zeros(size + 2 * _LINE, np.uint8)
    first = -room.__array_interface__["data"][0] % _LINE  # quicker than `ctypes`
    return np.ndarray(shape, dtype, room, first)
