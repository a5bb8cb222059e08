"""How much longer a plain script takes than a run to the same standard error of Var(q·k).

Run it as `python -m benchmarks crossing [--widths 1 8 64 512] [--seeds 9]`. The run is that of
dot_variance for normal coordinates at a width, from its first draw to its verdict, checks of law
and body included, in this one process with a worker's settings. The script draws pairs with a
generator of NumPy, multiplies, sums and takes the variance, chunk by chunk. They take turns in CPU
time, each seed a turn. The standard error that both are held to is that of the run's blocks, by the
moments of the law; of N pairs it is √(Var((q·k)²)/N).
"""

import argparse
import time
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import as_in_a_worker
from mcverify import discover, laws
from mcverify.judge.run import run
from mcverify.judge.world import world_of
from mcverify.verdict import Terms

NUMBERS = 2**24  # of a chunk of the script, 128 MiB; fewer pairs are drawn in one


def script(rng, d_k, pairs):
    """Seconds of what one would write for so many pairs, by those of one chunk."""
    chunk = min(round(pairs), NUMBERS // (2 * d_k))
    start = time.process_time()
    q = rng.standard_normal((chunk, d_k))
    k = rng.standard_normal((chunk, d_k))
    (q * k).sum(axis=1).var()
    return (time.process_time() - start) * pairs / chunk


def verdict(case, seed):
    """Seconds to the verdict on a case, and its finding."""
    start = time.process_time()
    finding = next(run([case], Terms(seed), jobs=1))
    return time.process_time() - start, finding


def pairs_for(case, blocks):
    """How many pairs have the standard error that the verdict's blocks have."""
    scores = laws.score_moments(laws.normal, case.drawn["d_k"])
    of_block = scores.of_block(world_of(case).tokens).of_squares
    return scores.of_block(1).of_squares / (of_block / blocks)


def main():
    as_in_a_worker("crossing")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--seeds", type=int, default=9)
    options = parser.parse_args()
    with threadpool_limits(1):
        table(options.widths, options.seeds)


def table(widths, seeds):
    """A line for each width."""
    claim = next(claim for claim in discover() if claim.name == "dot_variance")
    cases = {case.drawn["d_k"]: case for case in claim.cases() if case.drawn["law"] == laws.normal}
    print("milliseconds to a verdict, blocks, and how many times as long the plain script takes")
    print(f"{'d_k':>5} {'tokens':>6} {'blocks':>7} {'verdict':>8} {'script':>8} {'ratio':>6}")
    for d_k in widths:
        case, rng = cases[d_k], np.random.default_rng(0)
        verdict(case, 0)
        turns = []
        for seed in range(seeds):
            spent, finding = verdict(case, seed)
            needed = script(rng, d_k, pairs_for(case, finding.blocks))
            turns.append((finding.blocks, spent, needed))
        blocks, spent, needed = (median(column) for column in zip(*turns, strict=True))
        ratio = median(needed / spent for _, spent, needed in turns)
        print(f"{d_k:>5} {world_of(case).tokens:>6} {blocks:>7.0f} {1e3 * spent:>8.1f} "
              f"{1e3 * needed:>8.1f} {ratio:>6.1f}")


if __name__ == "__main__":
    main()
