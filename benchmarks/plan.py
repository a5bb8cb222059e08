"""How near `mcverify plan` comes to what runs then take: blocks and CPU seconds, claim by claim.

Run it as `python -m benchmarks plan [--count 60] [--margin-scale 0.3] [--most 12]`. Claims are
drawn at random; each is planned by the committed results and judged, in processes of their own, so
that neither finds what the other has computed. Claims foreseen to take more than ``--most`` seconds
are passed over.
"""

import argparse
import os
import pickle
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcverify.declare import discover
from mcverify.declare.claim import Claim
from mcverify.judge.run import run
from mcverify.plan import plan
from mcverify.results.folder import Results
from mcverify.verdict import Terms


def apart(function: Callable[[], Any]) -> Any:
    """What a function returns in a process of its own."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(function(), stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        found = pickle.load(stream)
    os.waitpid(process, 0)
    return found


def planned(claim: Claim, terms: Terms, results: Path) -> tuple[float, int, int]:
    """CPU seconds, blocks and open cases of its plan."""
    its = plan([claim], terms, Results(results))[claim]
    return its.seconds, its.blocks, len(its.open)


def taken(claim: Claim, terms: Terms) -> tuple[float, int, int]:
    """CPU seconds, blocks and open cases of its run."""
    began = time.process_time()
    found = list(run([*claim.cases(), *claim.control_cases()], terms, jobs=1))
    return (time.process_time() - began, sum(finding.blocks for finding in found),
            sum(finding.outcome == "INCONCLUSIVE" for finding in found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60, help="claims")
    parser.add_argument("--margin-scale", type=float, default=1.0)
    parser.add_argument("--most", type=float, default=12.0, help="foreseen seconds of a claim")
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    terms = Terms(margin_scale=options.margin_scale)
    claims = [claim for claim in discover.discover() if claim.draws and not claim.slow]
    random.Random(0).shuffle(claims)
    near = [0, 0]
    for claim in claims[:options.count]:
        foreseen = apart(lambda claim=claim: planned(claim, terms, options.results))
        if foreseen[0] > options.most:
            options.count -= 1
            print(f"passed over: {claim.name}, {foreseen[0]:.0f} s")
            continue
        found = apart(lambda claim=claim: taken(claim, terms))
        for index in range(2):
            near[index] += found[index] / 2 <= foreseen[index] <= 2 * found[index]
        print(f"{claim.name}: {foreseen[0]:.2f} s foreseen, {found[0]:.2f} s taken; blocks "
              f"{foreseen[1]} and {found[1]}; open {foreseen[2]} and {found[2]}", flush=True)
    print(f"within a factor of 2: CPU time of {near[0]}, blocks of {near[1]} of {options.count}")
