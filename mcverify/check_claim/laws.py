"""Hold the moments that laws declare against their draws, by claims that are judged like others.

They are on numbers of a token's q and k, seen along fixed weights: means, variances, and, for a law
that is not coupled, whether q and k move together. Margins are what about 8,192 blocks of a normal
law decide. A law that breaks, or whose blocks depend on each other, is told by the judge.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mcverify.arrays import Array
from mcverify.check_claim.remarks import PROBLEM, Remark, place_of
from mcverify.declare.claim import Case, Claim
from mcverify.declare.grid import grid
from mcverify.declare.names import WORLD
from mcverify.declare.prediction import absolute
from mcverify.judge.finding import Finding
from mcverify.judge.raised import described
from mcverify.judge.randomness import GlobalRandomness
from mcverify.judge.run import run
from mcverify.judge.watch import Watch
from mcverify.judge.world import World
from mcverify.laws import Law
from mcverify.statistic import mean, proportion, variance
from mcverify.verdict import Terms, Verdict

FALSE_ALARM = 1e-6  # of all that is said of the moments of all laws together
WIDE = 16  # of the widths that claims name, the narrowest are looked at, and all up to this one
TOKENS = 8  # of a block, if no claim says how many
MARGIN = 1 / 8  # of the spread that normal tokens have from block to block
BREAKS = ("name", "moments", "draw")  # parts of a law without which the rest tells nothing


def check(claims: Sequence[Claim], watch: Watch) -> tuple[set[Law], list[Remark]]:
    """The laws that are broken, and what is wrong with any that the claims name."""
    worlds, named, cases = _worlds(claims, watch), dict[str, Law](), list[Case]()
    problems: dict[tuple[Law, str], str] = {}  # by the part of a law, of which one line says enough
    for law, world in ((world.law, world) for world in worlds):
        if named.setdefault(str(law), law) != law:
            problems[law, "name"] = ("another law has this name and is not equal to it; tell all "
                                     "parameters in __str__, floats with .12g")
            continue
        randomness, at = GlobalRandomness(), f"moments({world.d_k})"
        try:
            watch.at(0, f"{at} of {law}")
            with np.errstate(all="ignore"):
                cases += [case for claim in _claims(world) for case in claim.cases()]
            randomness.untouched(at)
        except Exception as error:
            problems.setdefault((law, "moments"), f"{at} is broken: {described(error)}; let it "
                                "give means (d_k,) and covariances (d_k, d_k), nan where not known")
    terms = Terms(error_rate=FALSE_ALARM / (len(cases) or 1))
    for finding in sorted(run(cases, terms, 1, watch), key=lambda each: cases.index(each.case)):
        law, part = finding.case.drawn["law"], finding.case.claim.name.partition(" ")[0]
        if finding.broken:
            problems.setdefault((law, "draw"), finding.reason)
        elif finding.verdict is Verdict.REFUTED:
            problems.setdefault((law, part), _contradiction(finding))
    broken = {law for law, part in problems if part in BREAKS}
    claim_of = {world.law: claim for world, claim in worlds.items()}
    return broken, [
        Remark(PROBLEM, place_of(claim_of[law], getattr(type(law), part, type(law).moments)),
               f"{law}: {text.removeprefix(f'the law {law} ')}")
        for (law, part), text in problems.items() if law not in broken or part in BREAKS]


def _contradiction(finding: Finding) -> str:
    case, between = finding.case, f"[{finding.low:.4g}, {finding.high:.4g}]"
    if case.claim.statistic.support:
        return (f"coupled is False, but {case.claim.name} rise together with a probability in "
                f"{between}, and not of 1/2; set coupled to True")
    return (f"moments({case.drawn['d_k']}).{case.claim.name} is declared {case.predicted:.6g}, and "
            f"the draws have it in {between}; correct the one or the other")


def _worlds(claims: Sequence[Claim], watch: Watch) -> dict[World, Claim]:
    """The narrow worlds of users' laws that claims and controls name, each with such a claim."""
    worlds: dict[World, Claim] = {}
    for claim in claims:
        watch.at(0, f"the predictions of {claim.name}")
        for case in claim.all_cases() if claim.of_world else ():
            law, d_k, tokens = (case.drawn.get(name, TOKENS) for name in WORLD)
            if not _shipped(law):
                worlds.setdefault(World(law, d_k, tokens), claim)
    least = {each.law: each.d_k for each in sorted(worlds, key=lambda each: -each.d_k)}
    return {each: claim for each, claim in worlds.items() if each.d_k <= max(WIDE, least[each.law])}


def _shipped(law: Any) -> bool:
    """Whether a law is made of mcverify's own alone, which are held against theirs by its tests."""
    return not isinstance(law, Law) or (type(law).__module__.startswith("mcverify.laws.")
                                        and all(map(_shipped, vars(law).values())))


def _claims(world: World) -> list[Claim]:
    """On all that the law declares, but for what it does not know, and for constants."""
    over = grid(law=world.law, d_k=world.d_k, tokens=world.tokens)
    weights = np.random.default_rng(0).uniform(0.3, 1, (2, world.d_k))
    u, v = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    declared = (*_moments(world, u, v), *_ties(world, u, v))
    return [Claim(name, "As the law declares.", statistic, body, equals=value, over=over,
                  within=absolute(MARGIN * spread))
            for name, statistic, body, value, spread in declared
            if math.isfinite(value) and 0 < spread < math.inf]


def _moments(world: World, u: Array, v: Array) -> Iterator[Any]:
    """(name, statistic, body, number that is declared, and its normal spread) of each moment."""
    declared, coupled, none = world.law.moments(world.d_k), world.law.coupled, np.zeros_like(u)
    cross = declared.cross if coupled else np.nan_to_num(declared.cross, nan=0.0)
    centre = np.concatenate([declared.mean_q, declared.mean_k])
    cov = np.block([[declared.cov_q, cross], [cross.T, declared.cov_k]])
    # What is seen is of first degree in a coordinate, where a score may be of second.
    means, variances = (each.of_degree(0.5 if coupled else 1.0) for each in (mean, variance))
    for part, w in (("_q", np.append(u, none)), ("_k", np.append(none, v)),
                    ("_q + cov_k + 2 cross", np.append(u, v))):
        def body(q: Array, k: Array, w: Array = w) -> Array:
            return np.asarray(np.concatenate([q, k], axis=-1) @ w)

        used = w != 0  # of others it need not be known
        along = f"{part} along ({', '.join(f'{x:.2g}' for x in w[used][:6])})"
        square = float(w[used] @ cov[np.ix_(used, used)] @ w[used])
        yield f"cov{along}", variances, body, square, abs(square) * (2 / world.tokens) ** 0.5
        if not used.all():
            yield (f"mean{along}", means, body, float(w[used] @ centre[used]),
                   (abs(square) / world.tokens) ** 0.5)


def _ties(world: World, u: Array, v: Array) -> Iterator[Any]:
    """How often q and k rise together from token to token: half of the times if independent."""
    half = world.tokens // 2
    for name, number, later in (
            ("coordinates of a token's own q and k", np.asarray, 0),
            ("sizes of coordinates of a token's own q and k", np.abs, 0),
            ("neighbours, coordinates of a token's q and the next one's k,", np.asarray, 1)):
        def body(q: Array, k: Array, number: Any = number, later: int = later) -> Array:
            x, y = number(q @ u), np.roll(number(k @ v), -later, axis=1)
            rises = (x[:, :half] - x[:, half:2 * half]) * (y[:, :half] - y[:, half:2 * half])
            return np.asarray((1 + np.sign(rises)) / 2)

        if half and not world.law.coupled:  # Kendall's τ is 0 whatever the law
            yield name, proportion, body, 0.5, 0.5 / half**0.5
