"""What the functions of adapter.sql call. They take arrays; none reads a table."""
from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count


def count(values, epsilon):
    return Count(epsilon=epsilon, l0_sensitivity=1, linf_sensitivity=1, dtype="int").quick_result(values)


def total(values, low, high, epsilon):
    return BoundedSum(epsilon=epsilon, delta=0, lower_bound=low, upper_bound=high, l0_sensitivity=1, linf_sensitivity=1, dtype="int").quick_result(values)


def mean(values, low, high, epsilon):
    return BoundedMean(epsilon=epsilon, delta=0, lower_bound=low, upper_bound=high, l0_sensitivity=1, linf_sensitivity=1, dtype="float").quick_result(
        [float(value) for value in values])
