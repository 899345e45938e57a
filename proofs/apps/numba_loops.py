"""A loop that numba compiles."""

import numba
import numpy as np


@numba.njit
def total(values):
    result = 0.0
    for value in values:
        result += value * value
    return result


@numba.vectorize(["float64(float64, float64)"])
def hypotenuse(a, b):
    return (a * a + b * b) ** 0.5


values = np.arange(1000.0)
print(total(values), hypotenuse(values, values).sum().round(6), total.signatures)
