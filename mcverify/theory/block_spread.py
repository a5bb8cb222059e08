"""How much a block's mean over rows varies: those of all its queries with all groups of keys."""

import math

from mcverify.laws.fourth_powers import Powers, moment_of_sum
from mcverify.theory.softmax import jacobian_trace, sum_squares


def log_partition_spread(n: int, scale: float, d_k: int, queries: int, groups: int) -> float:
    """At least Var of the mean of ln Σ exp(s) over rows of n keys, all normal.

    A function F of independent N(0, 1) numbers varies by E ‖∇F‖² at most (Poincaré's inequality for
    the normal law; Chernoff 1981, doi 10.1214/aop/1176994428). The gradient is scale·Σ p_j k_j
    for a query and scale·Σ p_j q over the queries for a key, which are averaged over rows. Given
    its query a row's Σ p_j k_j has mean scale·q·E tr J, and across it squares of (d_k − 1)·Σ p_j²;
    along it they are at most the largest of n squares of N(0, 1), whose mean is at most
    ln(n/√(1 − 2λ))/λ at any λ. Given the keys, E p_j q are coefficients of p_j along orthonormal
    functions of q, whose squares have at most its variance as their sum (Bessel's inequality),
    which is E Σ p_j² − 1/n at most over all j.

    >>> log_partition_spread(2, 1.0, 1, 8, 8) < log_partition_spread(2, 1.0, 1, 8, 4)
    True
    """
    from scipy.optimize import minimize_scalar  # here: a quarter of a second that few starts need

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


def row_variance_spread(q: Powers, n: int, d_k: int, queries: int, groups: int) -> float:
    """Var of the mean of (y − 1)² over rows, y the sample variance of a row of n scores over d_k.

    Keys are normal; queries have independent coordinates that are alike, of variance 1. Given q
    and ν = n − 1, y = a·G/ν with a = ‖q‖²/d_k and G ~ χ²(ν). That of another query and the same
    keys is a'·H/ν, where H given G is (1 − ρ²) times a noncentral χ²(ν) and ρ the cosine of q, q'.

    >>> coin = Powers((1.0, 0.0) * 4 + (1.0,))
    >>> round(row_variance_spread(coin, 2, 1, 1, 1), 9)  # of (z² − 1)²
    56.0
    """
    v = n - 1
    squares = q.coordinate[::2]
    a = [moment_of_sum(squares, d_k, i) / d_k**i for i in range(5)]
    m = [math.prod(v + 2 * j for j in range(i)) for i in range(5)]
    c = [m[i] / v**i for i in range(5)]
    mean = a[2] * c[2] - 1
    own = sum((-1) ** i * math.comb(4, i) * a[i] * c[i] for i in range(5))
    query = a[4] * c[2] ** 2 - 4 * a[3] * c[2] + (4 + 2 * c[2]) * a[2] - 3
    products = moment_of_sum([x * x for x in q.coordinate], d_k, 4)  # E (q·q')⁴ of two queries
    cosines = (a[2] ** 2, a[2] ** 2 / d_k, products / d_k**4)
    both = v * (v + 2)
    y22 = (cosines[0] * both * m[2] + cosines[1] * ((2 * v + 4) * m[3] - 2 * both * m[2])
           + cosines[2] * (m[4] - (2 * v + 4) * m[3] + both * m[2])) / v**4
    y21 = a[2] * (v * m[2] + (m[3] - v * m[2]) / d_k) / v**3
    keys = y22 - 4 * y21 + 2 * a[2] * c[2] + 4 * (1 + 2 / (v * d_k)) - 3
    shared = (groups - 1) * (query - mean**2) + (queries - 1) * (keys - mean**2)
    return float(own - mean**2 + shared) / (queries * groups)


def row_variance_mean_spread(mean: float, n: int, d_k: int, queries: int, groups: int) -> float:
    """Var of the mean over rows of y as above, for queries whose coordinates are N(mean, 1).

    Of two queries and the same keys Cov(y, y') is 2/ν·E (q·q')²/d_k².

    >>> row_variance_mean_spread(0.0, 2, 1, 1, 1)  # of q²·G: 3·3 − 1
    8.0
    """
    v, square = n - 1, mean**2
    length, spread = 1 + square, (2 + 4 * square) / d_k  # of ‖q‖²/d_k: noncentral χ²
    own = (1 + 2 / v) * (spread + length**2) - length**2
    keys = 2 / v * ((1 + 2 * square) / d_k + square**2)
    return (own + (groups - 1) * spread + (queries - 1) * keys) / (queries * groups)
