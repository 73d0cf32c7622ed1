"""Arrays in lines of their own."""

import numpy as np
import pytest

from symbayes.kernels.chain import zeros
from symbayes.kernels.tree import NODE


@pytest.mark.parametrize("shape", [0, 1, 7, (3, 5), (0, 4), (2, 3, 9)])
@pytest.mark.parametrize("dtype", [np.float64, np.int64, NODE])
def test_arrays_are_as_numpy_would_make_them_but_begin_with_a_line(shape, dtype):
    many = [zeros(shape, dtype) for _ in range(9)]
    for array in many:
        np.testing.assert_array_equal(array, np.zeros(shape, dtype))
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.ctypes.data % 64 == 0 or array.size == 0
    # None shares a line with another.
    lines = [set(range(a.ctypes.data // 64, -(-(a.ctypes.data + a.nbytes) // 64))) for a in many]
    assert len(set.union(*lines)) == sum(map(len, lines))
