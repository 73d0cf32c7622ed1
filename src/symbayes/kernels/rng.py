"""Random numbers from an explicit state: xoshiro256** of Blackman and Vigna (2021).

The state is a `uint64[4]` array that the caller owns, so a chain can be reproduced, saved and
resumed, and runs without the GIL.
"""

import math

import numpy as np

from .compiling import kernel

_5, _9 = np.uint64(5), np.uint64(9)
_7, _11, _17, _45, _64 = np.uint64(7), np.uint64(11), np.uint64(17), np.uint64(45), np.uint64(64)
_TWO_TO_MINUS_53 = 2.0**-53


def seed_state(seed_sequence: np.random.SeedSequence) -> np.ndarray:
    """Return the generator state that a NumPy seed sequence stands for."""
    state = seed_sequence.generate_state(4, np.uint64)
    if not state.any():  # the one state from which the generator never leaves
        state[0] = 1
    return state


@kernel
def _rotate_left(x, k):
    return (x << k) | (x >> (_64 - k))


@kernel
def next_bits(rng):
    """Return the next 64 random bits."""
    result = _rotate_left(rng[1] * _5, _7) * _9
    t = rng[1] << _17
    rng[2] ^= rng[0]
    rng[3] ^= rng[1]
    rng[1] ^= rng[2]
    rng[0] ^= rng[3]
    rng[2] ^= t
    rng[3] = _rotate_left(rng[3], _45)
    return result


@kernel
def uniform(rng):
    """Return a number from [0, 1)."""
    return np.float64(next_bits(rng) >> _11) * _TWO_TO_MINUS_53


@kernel
def integer(rng, n):
    """Return an integer from 0 to n - 1."""
    return np.int64(uniform(rng) * n)


@kernel
def normal(rng):
    """Return a standard normal number (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(rng)))
    return radius * math.cos(2.0 * math.pi * uniform(rng))


@kernel
def gamma(rng, shape):
    """Return a gamma number of unit scale (Marsaglia and Tsang, 2000)."""
    boost = 1.0
    if shape < 1.0:
        boost = (1.0 - uniform(rng)) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(rng)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if math.log(1.0 - uniform(rng)) < 0.5 * x * x + d - d * v + d * math.log(v):
                return boost * d * v


@kernel
def inverse_gamma(rng, shape, scale):
    """Return an inverse-gamma number, density proportional to x^(-shape-1) exp(-scale/x)."""
    return scale / gamma(rng, shape)


@kernel
def pick(rng, cumulative):
    """Return an index with the probabilities whose running sums, up to 1, are given."""
    u = uniform(rng)
    low, high = 0, cumulative.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low
