"""At most how much a block's mean over rows of softmax varies, for normal queries and keys.

A function F of independent N(0, 1) numbers varies by E ‖∇F‖² at most (Poincaré's inequality for
the normal law; Chernoff 1981, doi 10.1214/aop/1176994428).
"""

import math

from scipy.optimize import minimize_scalar

from mcverify.theory.softmax import jacobian_trace, sum_squares


def log_partition_spread(n: int, scale: float, d_k: int, queries: int, groups: int) -> float:
    """At least Var of the mean of ln Σ exp(s) over rows: all queries with all groups of n keys.

    The gradient is scale·Σ p_j k_j for a query and scale·Σ p_j q over the queries for a key, which
    are averaged over rows. Given its query a row's Σ p_j k_j has mean scale·q·E tr J, and across
    it squares of (d_k − 1)·Σ p_j²; along it they are at most the largest of n squares of N(0, 1),
    whose mean is at most ln(n/√(1 − 2λ))/λ at any λ. Given the keys, E p_j q are coefficients of
    p_j along orthonormal functions of q, whose squares have at most its variance as their sum
    (Bessel's inequality), which is E Σ p_j² − 1/n at most over all j.

    >>> log_partition_spread(2, 1.0, 1, 8, 8) < log_partition_spread(2, 1.0, 1, 8, 4)
    True
    """
    largest = minimize_scalar(lambda x: (math.log(n) - math.log1p(-2 * x) / 2) / x,
                              bounds=(1e-3, 0.5 - 1e-6), method="bounded").fun
    squares = sum_squares(n, scale * math.sqrt(d_k), d_k)
    # E ‖q‖² f(‖q‖) is d_k·E f of d_k + 2 coordinates.
    longer = n, scale * math.sqrt(d_k + 2), d_k + 2
    keys = (d_k - 1) * squares + float(largest)
    along = scale**2 * d_k * jacobian_trace(*longer)
    at_query = keys / groups + (1 - 1 / groups) * along
    at_key = d_k * sum_squares(*longer) / queries + (1 - 1 / queries) * (squares - 1 / n)
    return scale**2 * (at_query / queries + at_key / groups)
