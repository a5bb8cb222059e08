"""How much longer a plain script takes to a 0.1 % standard error of Var(q·k) than crossed blocks.

Run it as `python -m benchmarks crossing [--widths 8 64 512]`. The blocks have 11√d_k tokens, once
capped as the runner caps them (64 smaller blocks decide a claim sooner) and once not. All routes
draw normal q and k with one thread, measure their own standard error as they go, and take turns,
so that a change of the machine's speed meets all; the time to 0.1 % follows as
time · (error / 0.1 %)².
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from mcverify import attention, laws
from mcverify.judge.world import MAX_TOKENS, World
from mcverify.statistic import variance

TARGET = 1e-3
PAIRS = 20_000  # of a round of the plain script: 160 MB at d_k = 512
ROUNDS = 8


def plain(rng, d_k):
    """What one would write: N pairs, multiply, sum, var (here in 200 parts, for the error)."""
    q = rng.standard_normal((PAIRS, d_k))
    k = rng.standard_normal((PAIRS, d_k))
    s = (q * k).sum(axis=1)
    return variance.reduce(s.reshape(200, -1))


def crossed(seed, d_k, cap):
    """64 blocks of a world, every query with every key."""
    world = World(laws.normal, d_k, min(round(11 * d_k**0.5), cap))
    chunks = list(world.chunks(64, 128))
    tables = [variance.reduce(attention.scores(*world.draw(seed, *chunk))) for chunk in chunks]
    return np.concatenate(tables)


def seconds_to_target(tables, seconds, d_k):
    """Time until the standard error is 0.1 % of d_k, from the error and the time of all rounds."""
    estimate = variance.estimate(np.concatenate(tables), 1e-3)
    return seconds * (estimate.stderr / (TARGET * d_k)) ** 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", type=int, nargs="+", default=[8, 64, 512])
    widths = parser.parse_args().widths
    print(f"seconds to {TARGET:.1%}, and how many times as long the plain script takes")
    print(f"{'d_k':>5} {'plain':>8} {'crossed':>8} {'ratio':>6} {'uncapped':>9} {'ratio':>6}")
    for d_k in widths:
        rng = np.random.default_rng(0)
        routes = {
            "plain": lambda seed, d_k=d_k, rng=rng: plain(rng, d_k),
            "capped": lambda seed, d_k=d_k: crossed(seed, d_k, MAX_TOKENS),
            "uncapped": lambda seed, d_k=d_k: crossed(seed, d_k, 10**6),
        }
        tables, spent = {name: [] for name in routes}, dict.fromkeys(routes, 0.0)
        for seed in range(ROUNDS):
            for name, draw in routes.items():
                start = time.process_time()
                tables[name].append(draw(seed))
                spent[name] += time.process_time() - start
        needed = {name: seconds_to_target(tables[name], spent[name], d_k) for name in tables}
        print(f"{d_k:>5} {needed['plain']:>8.2f} {needed['capped']:>8.2f} "
              f"{needed['plain'] / needed['capped']:>6.1f} {needed['uncapped']:>9.2f} "
              f"{needed['plain'] / needed['uncapped']:>6.1f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
