"""Time and memory of additive attention beside those of scaled dot-product attention.

Run it as `python -m benchmarks additive [--tokens 128 256 512 1024] [--d_k 64] [--width 64]`. Both
routes go from one head's queries, keys and values to its output: scores, softmax, average. They
work in float32, in which the hidden layer of 1024 tokens, 1024²·64 numbers, takes 256 MiB, and on
one thread. The routes take turns, and the best of their times counts; the peak memory is traced in
a run of its own, and is what the route allocates beyond its inputs. The additive route includes the
two projections that it cannot do without.
"""

import argparse
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

from mcverify import attention

ROUNDS = 10


def routes(rng, tokens, d_k, width):
    """Name -> a function without arguments that gives the (1, tokens, d_k) output."""
    q, k, values = rng.standard_normal((3, 1, tokens, d_k), dtype=np.float32)
    w_q, w_k = rng.standard_normal((2, d_k, width), dtype=np.float32) / np.float32(d_k**0.5)
    v = rng.standard_normal(width, dtype=np.float32) / np.float32(width**0.5)
    return {
        "dot": lambda: attention.softmax(attention.scores(q, k, d_k**-0.5)) @ values,
        "additive": lambda: attention.softmax(
            attention.additive_scores(q, k, w_q, w_k, v)) @ values,
    }


def best_seconds(functions):
    """The shortest processor time of each function in rounds in which all take a turn."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, run in functions.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return best


def peak_mebibytes(run):
    """The most that the function holds at a time; NumPy reports its arrays to tracemalloc."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 256, 512, 1024])
    parser.add_argument("--d_k", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    given = parser.parse_args()
    print(f"one head, d_k = {given.d_k}, hidden width {given.width}, float32, one thread")
    print(f"{'':>6} {'milliseconds':>26} {'peak MiB':>26}")
    print(f"{'tokens':>6} {'dot':>8} {'additive':>9} {'ratio':>7} {'dot':>8} {'additive':>9} "
          f"{'ratio':>7}")
    for tokens in given.tokens:
        functions = routes(np.random.default_rng(0), tokens, given.d_k, given.width)
        memory = {name: peak_mebibytes(run) for name, run in functions.items()}
        spent = {name: 1e3 * seconds for name, seconds in best_seconds(functions).items()}
        print(f"{tokens:>6} {spent['dot']:>8.2f} {spent['additive']:>9.2f} "
              f"{spent['additive'] / spent['dot']:>7.1f} {memory['dot']:>8.2f} "
              f"{memory['additive']:>9.2f} {memory['additive'] / memory['dot']:>7.1f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
