"""The arrays of a file, each taken once and checked as it is taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .archive import Arrays
from .stored_zip import Damage

#: Bounds of what is finite.
LARGEST = float(np.finfo(np.float64).max)


class Parts:
    """What a file holds.

    Parameters
    ----------
    arrays : dict of str to ndarray
        As `read_archive` returns them.
    """

    def __init__(self, arrays: Arrays):
        self._left = dict(arrays)

    def take(self, name: str, dtype: type[np.generic], shape: Sequence[int | None]) -> np.ndarray:
        """Return an array, which has to be of this type and shape; None is any size."""
        array = self._left.pop(name, None)
        if array is None:
            raise Damage(f"the array {name} is missing")
        if array.dtype != dtype or array.ndim != len(shape) or not all(
            wanted in (None, size) for wanted, size in zip(shape, array.shape, strict=True)
        ):  # fmt: skip
            raise Damage(
                f"the array {name} is of {array.dtype} with the shape {array.shape}, which does "
                "not fit the rest"
            )
        return array

    def within(
        self,
        name: str,
        dtype: type[np.generic],
        shape: Sequence[int | None],
        least: float = -LARGEST,
        most: float = LARGEST,
    ) -> np.ndarray:
        """Return an array whose values have to lie within bounds; nan never does."""
        array = self.take(name, dtype, shape)
        if not ((array >= least) & (array <= most)).all():
            raise Damage(f"the array {name} has values that cannot be")
        return array

    def indices(self, name: str, shape: Sequence[int | None], n: int) -> np.ndarray:
        """Return an array of places in a list of `n` things."""
        return self.within(name, np.int32, shape, 0, n - 1)

    def finish(self) -> None:
        """Complain about arrays that were not taken."""
        if self._left:
            raise Damage(f"it has arrays that belong to nothing, such as {min(self._left)}")


def split(name: str, flat: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """Return consecutive parts of an array, along its last axis."""
    ends = np.cumsum(lengths, dtype=np.int64)
    if flat.shape[-1] != (ends[-1] if len(ends) else 0):
        raise Damage(f"the array {name} does not have the length that its parts have together")
    pairs = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return [flat[..., start:end] for start, end in pairs]
