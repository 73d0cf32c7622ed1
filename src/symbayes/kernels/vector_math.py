"""sin, cos, exp and log over rows, as polynomials that the compiler turns into vector code.

The loops are branch-free for ordinary arguments and count the others, which a second, rare pass
hands to the C library. Within 4 ulp of NumPy wherever its result is finite and normal, nan and
inf where NumPy has them (`tests/kernels/test_vector_math.py`).

Indices are unsigned: a signed one may be negative in Python, and the test for it would keep the
compiler from vectorising.
"""

import math

import numpy as np

from .compiling import inlined, merged

# Adding this to a float of moderate size leaves its nearest integer in the lowest bits.
_ROUNDER = 1.5 * 2.0**52

# pi/2 and log(2) in parts so short that a multiple of all but the last is exact (Cody and Waite).
_HALF_PI_1 = float.fromhex("0x1.921fb54400000p+0")
_HALF_PI_2 = float.fromhex("0x1.0b4611a600000p-34")
_HALF_PI_3 = float.fromhex("0x1.3198a2e037073p-69")
_LOG_2_1 = float.fromhex("0x1.62e42fefa2000p-1")
_LOG_2_2 = float.fromhex("0x1.9ef35793c7673p-41")
_TWO_OVER_PI = 2.0 / math.pi
_ONE_OVER_LOG_2 = 1.0 / math.log(2.0)

# Where the fast loops are good. Multiples of pi/2 stay exact up to 2^20 of them.
_SINE_LIMIT = 1.0e6
_EXP_LIMIT = 708.0
_SMALLEST_NORMAL = 2.2250738585072014e-308

NO_TURN, QUARTER_TURN = np.int64(0), np.int64(1)
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_MANTISSA = 0x000FFFFFFFFFFFFF


@inlined
def _sine(x, quarter_turns):
    """sin(x + quarter_turns * pi/2) for |x| up to the limit; kernels of Sun's fdlibm."""
    t = x * _TWO_OVER_PI + _ROUNDER
    k = t - _ROUNDER
    quadrant = np.float64(t).view(np.int64) + quarter_turns
    r = ((x - k * _HALF_PI_1) - k * _HALF_PI_2) - k * _HALF_PI_3
    z = r * r
    s = 1.58969099521155010221e-10
    s = -2.50507602534068634195e-08 + z * s
    s = 2.75573137070700676789e-06 + z * s
    s = -1.98412698298579493134e-04 + z * s
    s = 8.33333333332248946124e-03 + z * s
    s = -1.66666666666666324348e-01 + z * s
    sine = r + r * z * s
    c = -1.13596475577881948265e-11
    c = 2.08757232129817482790e-09 + z * c
    c = -2.75573143513906633035e-07 + z * c
    c = 2.48015872894767294178e-05 + z * c
    c = -1.38888888888741095749e-03 + z * c
    c = 4.16666666666666019037e-02 + z * c
    cosine = 1.0 - (0.5 * z - z * z * c)
    value = cosine if quadrant & 1 else sine
    return -value if quadrant & 2 else value


@inlined
def _exp(x):
    """exp(x) for |x| up to the limit: 2^k (1 + r + r^2 q(r)), q a fitted polynomial."""
    t = x * _ONE_OVER_LOG_2 + _ROUNDER
    k = t - _ROUNDER
    r = (x - k * _LOG_2_1) - k * _LOG_2_2
    q = 2.5024645152972863e-08
    q = 2.763112558644741e-07 + r * q
    q = 2.7557507286142343e-06 + r * q
    q = 2.480149034586704e-05 + r * q
    q = 0.00019841269597117495 + r * q
    q = 0.0013888888946679155 + r * q
    q = 0.008333333333451433 + r * q
    q = 0.04166666666651632 + r * q
    q = 0.16666666666666483 + r * q
    q = 0.5000000000000012 + r * q
    p = 1.0 + (r + r * r * q)
    exponent = np.float64(t).view(np.int64) << 52
    return np.int64(np.float64(p).view(np.int64) + exponent).view(np.float64)


@inlined
def _log(x):
    """log(x) for positive, normal, finite x: k log(2) + 2 artanh(f / (2 + f)) as in fdlibm."""
    bits = np.float64(x).view(np.int64) - _SQRT_HALF_BITS
    k = np.float64(bits >> 52)
    f = np.int64((bits & _MANTISSA) + _SQRT_HALF_BITS).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    r = 1.479819860511658591e-01
    r = 1.531383769920937332e-01 + z * r
    r = 1.818357216161805012e-01 + z * r
    r = 2.222219843214978396e-01 + z * r
    r = 2.857142874366239149e-01 + z * r
    r = 3.999999999940941908e-01 + z * r
    r = 6.666666666666735130e-01 + z * r
    return k * _LOG_2_1 + (s * (2.0 + z * r) + k * _LOG_2_2)


@merged
def sine_rows(source, s, target, t, n, quarter_turns):
    """target[t:t+n] = sin(source[s:s+n]), or cos for one quarter turn."""
    unusual = 0
    for i in range(n):
        x = source[s + i]
        target[t + i] = _sine(x, quarter_turns)
        unusual += not (abs(x) <= _SINE_LIMIT)
    if unusual > 0:
        for i in range(n):
            x = source[s + i]
            if not (abs(x) < math.inf):
                target[t + i] = math.nan
            elif abs(x) > _SINE_LIMIT:
                target[t + i] = math.sin(x) if quarter_turns == NO_TURN else math.cos(x)


@merged
def exp_rows(source, s, target, t, n):
    """target[t:t+n] = exp(source[s:s+n])."""
    unusual = 0
    for i in range(n):
        x = source[s + i]
        target[t + i] = _exp(x)
        unusual += not (abs(x) <= _EXP_LIMIT)
    if unusual > 0:
        for i in range(n):
            x = source[s + i]
            if not (abs(x) <= _EXP_LIMIT):
                # math.exp raises above this in plain Python; inf is the answer in both.
                target[t + i] = math.inf if x > 709.782712893384 else math.exp(x)


@merged
def log_rows(source, s, target, t, n):
    """target[t:t+n] = log(source[s:s+n])."""
    unusual = 0
    for i in range(n):
        x = source[s + i]
        target[t + i] = _log(x)
        unusual += not (x >= _SMALLEST_NORMAL and x < math.inf)
    if unusual > 0:
        for i in range(n):
            x = source[s + i]
            if not (x >= _SMALLEST_NORMAL and x < math.inf):
                if x > 0.0:
                    target[t + i] = math.log(x)
                else:
                    target[t + i] = -math.inf if x == 0.0 else math.nan
