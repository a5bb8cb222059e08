"""Each fault that a claim file can have is found, by its line, and sound files have none."""

import contextlib
import copy
import dataclasses
import importlib
import os
import random
import textwrap
from pathlib import Path
from pickle import PicklingError

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import ndtri

from mcverify import Claim, absolute, check, discover, grid, laws
from mcverify.conformance import (
    Doubt,
    Note,
    Problem,
    bodies,
    costs,
    inspect,
    moments,
    ok,
    report,
)
from mcverify.conformance import laws as law_checks
from mcverify.conformance.guard import Drawn, drawing, generators, reading
from mcverify.declare.discover import BUILT_IN
from mcverify.declare.fault import ClaimError
from mcverify.judge.world import World
from mcverify.laws import Moments
from mcverify.statistic import mean, proportion

OLD = default_rng(0)
THEMES = ("hand", "identities")
PROJECTED = laws.projected(laws.normal, laws.initialisation.xavier(), 4, weights=1)
HEAD = """\
import dataclasses, math, os, random, signal, sys, time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
import numpy as np
from numpy.random import default_rng
from mcverify import Verdict, absolute, claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.laws import Moments
from mcverify.statistic import exact, kurtosis, mean, proportion, variance

WORLD = grid(law=laws.normal, d_k=2, tokens=2)
wide = dict(equals=0, within=absolute(0.5), over=WORLD)
TWO = dict(equals=2, within=absolute(1))

class Base:
    coupled, finite_moments = False, math.inf
    def __str__(self):
        return type(self).__name__
    def draw(self, rng, blocks, tokens, d_k):
        return tuple(rng.standard_normal((2, blocks, tokens, d_k)))
    def moments(self, d_k):
        return laws.normal.moments(d_k)
"""
FIRST = HEAD.count("\n") + 1  # the line on which a fault begins

pytestmark = pytest.mark.slow


def body(name, *lines, head="@claim(mean, **wide)", asks="q, k, rng"):
    """A claim on the mean of q that does something else first."""
    text = "".join(f"    {line}\n" for line in lines)
    return f'{head}\ndef {name}({asks}):\n    """A sentence."""\n{text}'


def law(name, text, value=None, decorator="@dataclass(frozen=True)\n"):
    """A law that breaks a rule, and a claim on it."""
    over = f"over=grid(law={value or name + '()'}, d_k=2, tokens=2)"
    return (f"{decorator}class {name}(Base):\n{textwrap.indent(text, '    ')}\n"
            f"@claim(variance, **TWO, {over})\n"
            f'def on_{name.lower()}(q, k):\n    """A sentence."""\n    return q + k\n')


KNOWN_MEASURED = 'float(np.mean(default_rng(0).standard_normal(9)))'
FAULTS = {  # what is wrong -> the file, and what is said of it
    "nothing": (body("none"), "the body returned None"),
    "raises": (body("raises", "return q[:, 99]"), "IndexError: index 99 is out of bounds"),
    "shape": (body("shape", "return q.mean()"), "the first axis must be the 512 blocks"),
    "nan": (body("nans", "return np.where(q > 0, q, np.nan)"), "NaN or infinite values out of"),
    "complex": (body("complexes", "return q * 1j"), "complex128 values; they must be real"),
    "writes": (body("writes", "q *= 2", "return q"), "work on a copy"),
    "writes_slyly": (body("writes_slyly", "q.setflags(write=True)", "q *= 2", "return q - q[:1]"),
                     "the body changes q or k"),
    "seeds": (body("seeds", "np.random.seed(0)", "return q"), "used the global random state"),
    "globally": (body("globally", "return q + random.random()"), "used the global random state"),
    "unseeded": (body("unseeded", "return q + default_rng().normal()"),
                 "measured twice from the same draws, the values differ"),
    "counter": ("calls = []\n" + body("counter", "calls.append(0)", "return q + len(calls)"),
                "measured twice from the same draws, the values differ"),
    "clock": (body("clock", "return q + time.perf_counter()"), "read no clock"),
    "process": (body("process", "return q + os.getpid()"), "another process gets other values"),
    "exits": (body("exits", "sys.exit(3)"), "SystemExit: 3"),
    "dies": (body("dies", "os.kill(os.getpid(), signal.SIGKILL)"),
             "its process was killed (SIGKILL(-9))"),
    "deaf": (body("deaf", "return rng.standard_normal(len(q))"),
             "the values stay the same when q and k are drawn anew, so the body measures nothing"),
    "constant": (body("constant", "return np.full(len(q), 0.1)", asks="q"),
                 "the values are the same in all blocks, also when q is drawn anew"),
    "exact_draws": (body("draws", "return default_rng(0).random()", asks="",
                         head="@claim(exact, equals=0.6, within=absolute(0.5))"),
                    "but the statistic exact is for a calculation"),
    "exact_clock": (body("late", "return time.perf_counter()", asks="",
                         head="@claim(exact, at_least=0.6, expect=Verdict.REFUTED)"),
                    "the values differ"),
    "wider": (body("wider", "return q if d_k == 2 else q / 0", asks="q, d_k", head="@claim(mean, "
                   "equals=0, within=absolute(1), over=grid(law=laws.normal, d_k=[2, 4]))"),
              "at wider-normal-d_k:4: the body returned"),
    "undefined": (body("undefined", "return 0 * q + d_k + 0 * k", asks="q, k, d_k", head="@claim("
                       "kurtosis, equals=0, within=absolute(1), over=WORLD)"),
                  "the values are the same in all blocks, also when q and k are drawn anew"),
    # what a file declares
    "margin": (body("margin", "return q", head="@claim(mean, equals=0, over=WORLD)"),
               "has equals without within"),
    "syntax": ("def broken(:\n", "SyntaxError"),
    "twice": (body("same", "return q", asks="q") + body("same", "return -q", asks="q"),
              f"the function of this name in line {FIRST + 5} replaces it"),
    "replaced": (body("one", "return q", asks="q") + "two = dataclasses.replace(one, equals=0.1)\n",
                 "both one and two are claims of this name"),
    "nested": ("def make():\n" + textwrap.indent(body("inner", "return q"), "    ")
               + body("outer", "return q", asks="q"), "inner: is not found"),
    "grid": (body("gridded", "return q", asks="q", head="@claim(mean, equals=0, "
                  "within=absolute(1), over=grid(law=laws.normal, d_k=2, pid=os.getpid()))"),
             "another process finds other cases"),
    "argument": ("assert sys.argv[0]\n" + body("argued", "return q", asks="q"),
                 f"does not load in another process: argument.py:{FIRST}: AssertionError"),
    "zz_clash": (body("a_calculation", "return 1.0", asks="", head="@claim(exact, equals=1, "
                      "within=absolute(0.1))"), "two claims are named a_calculation, the other in"),
    # predictions
    "seeded": (f"def foretold():\n    return {KNOWN_MEASURED}\n" + body(
        "seeded", "return q", asks="q", head="@claim(mean, equals=foretold, within=absolute(9), "
        "over=WORLD)"), "equals makes a generator of random numbers"),
    "cached": (f"@cache\ndef foretold():\n    return {KNOWN_MEASURED}\nforetold()\n" + body(
        "cached", "return q", asks="q", head="@claim(mean, equals=foretold, within=absolute(9), "
        "over=WORLD)"), "equals makes a generator of random numbers"),
    "older": ("MINE = default_rng(0)\n" + body(
        "older", "return q", asks="q", head="@claim(mean, equals=lambda: MINE.normal(), "
        "within=absolute(9), over=WORLD)"), "equals draws from a generator that was made before"),
    "global": (body("global_", "return q", asks="q", head="@claim(mean, equals=lambda: "
                    "random.random(), within=absolute(9), over=WORLD)"),
               "equals draws from a generator that was made before"),
    "own_draw": (body("own", "return q", asks="q", head="@claim(mean, equals=lambda law: "
                      "law.draw(default_rng(0), 1, 1, 1)[0].sum(), within=absolute(9), over=WORLD"
                      ")"),
                 "equals makes a generator of random numbers"),
    "results": (body("reads", "return q", asks="q", head="@claim(mean, equals=lambda: "
                     "len(Path('results/old.txt').read_text()), within=absolute(9), over=WORLD)"),
                "equals opens results/old.txt"),
    "csv": (body("tabled", "return q", asks="q", head="@claim(mean, equals=lambda: "
                 "np.loadtxt('mine.csv').item(), within=absolute(9), over=WORLD)"),
            "equals opens mine.csv"),
    "loads": ("TRUTH = np.loadtxt('results/old.txt')\n" + body("loads", "return q", asks="q"),
              "opens results/old.txt while it is loaded"),
    "waits": ("seen = []\n" + body("waits", "seen.append(0)", "return q", asks="q",
                                   head="@claim(mean, equals=lambda: min(len(seen), 1), "
                                        "within=absolute(9), over=WORLD)"),
              "its prediction has changed since it was measured"),
    "crashes": (body("crashes", "return q", asks="q", head="@claim(mean, equals=lambda d_k: "
                     "1 / (d_k - 2), within=absolute(9), over=WORLD)"),
                "its prediction at crashes-normal-d_k:2-tokens:2 is broken: ZeroDivisionError"),
    # what can refute it
    "bound": (body("bound", "return q", asks="q", head="@claim(mean, at_most=1, over=WORLD)"),
              "no control shows that anything can refute it"),
    "control": (body("controlled", "return q * size", asks="q, size=1",
                     head="@claim(mean, at_most=1, over=WORLD, controls=grid(size=2))"),
                "the control controlled-normal-d_k:2-tokens:2-control-size:2 must be REFUTED, but"),
    "control_breaks": (body("control_breaks", "return q[:, size]", asks="q, size=1",
                            head="@claim(mean, at_most=1, over=WORLD, controls=grid(size=2))"),
                       "control-size:2 is broken: IndexError"),
    # laws
    "part": ("@dataclass(frozen=True)\nclass Part:\n    coupled: bool = False\n"
             "    def draw(self, rng, blocks, tokens, d_k): ...\n"
             + body("parted", "return q", asks="q", head="@claim(mean, equals=0, "
                    "within=absolute(9), over=grid(law=Part(), d_k=2))")
             + body("whole", "return q", asks="q"), "Part: has no moments, finite_moments; a law"),
    "name": ("class Same:\n    __eq__, __hash__ = lambda *a: True, lambda s: 0\n"
             "    coupled, finite_moments = False, math.inf\n    draw, moments = Base.draw, "
             "Base.moments\n    def __repr__(self): return 'same'\n" + body(
                 "named", "return q", asks="q", head="@claim(mean, equals=0, within=absolute(9), "
                 "over=grid(law=Same(), d_k=2))"), "has no __str__"),
    "not_frozen": (law("Soft", "rho: float = 0", decorator="@dataclass(unsafe_hash=True)\n"),
                   "can be changed after it was made"),
    "identity": (law("Plain", "pass", decorator=""), "is not equal to its own copy"),
    "namesakes": (law("Namesake", "rho: float", value="[Namesake(0)]") + body(
        "namesaked", "return q", asks="q", head="@claim(mean, equals=0, within=absolute(9), "
        "over=grid(law=Namesake(1), d_k=2))"), "another law has this name and is not equal"),
    "coupled_word": (law("Word", "coupled: str = 'no'"), "coupled is 'no'; it must be True or"),
    "order": (law("Order", "finite_moments: float = math.nan"), "finite_moments is nan"),
    "dims": (law("Dims", "def draw(self, rng, blocks, tokens, d_k):\n"
                 "    return tuple(rng.standard_normal((2, tokens, blocks, d_k)))"),
             "drew q of shape (2, 4, 2); it must be (blocks, tokens, d_k) = (4, 2, 2)"),
    "infinite": (law("Infinite", "def draw(self, rng, *shape):\n"
                     "    return tuple(rng.standard_normal((2, *shape)) * math.inf)"),
                 "drew q with NaN or infinite entries"),
    "whole_numbers": (law("Ints", "def draw(self, rng, *shape):\n"
                          "    return tuple(rng.integers(-1, 2, (2, *shape)))"),
                      "draws int64 and int64 numbers; they must be floats"),
    "law_global": (law("Global", "def draw(self, rng, *shape):\n"
                       "    return tuple(np.random.standard_normal((2, *shape)))"),
                   "used the global random state"),
    "law_unseeded": (law("Unseeded", "def draw(self, rng, *shape):\n"
                         "    return tuple(default_rng().standard_normal((2, *shape)))"),
                     "two draws from the same generator differ"),
    "law_seeded": (law("Seeded", "def draw(self, rng, *shape):\n"
                       "    return tuple(default_rng(0).standard_normal((2, *shape)))"),
                   "every generator draws the same q and k"),
    "four_blocks": (law("Four", "def draw(self, rng, blocks, tokens, d_k):\n"
                        "    assert blocks > 2\n"
                        "    return Base.draw(self, rng, blocks, tokens, d_k)"),
                    "two blocks cannot be drawn: AssertionError"),
    "later": (law("Later", "def draw(self, rng, blocks, tokens, d_k):\n"
                  "    q, k = Base.draw(self, rng, blocks, tokens, d_k)\n"
                  "    return np.where(q > 3.5, np.nan, q), k"), "drew q with NaN or infinite"),
    "shared": (law("Shared", "def draw(self, rng, blocks, tokens, d_k):\n"
                   "    x = rng.standard_normal((2, blocks, tokens, d_k))\n"
                   "    return tuple(0.6 * x + 0.8 * rng.standard_normal((2, 1, 1, d_k)))"),
               "blocks drawn in one call are too alike in their entries"),
    "shared_scale": (law("Scale", "def draw(self, rng, blocks, tokens, d_k):\n"
                         "    x = rng.standard_normal((2, blocks, tokens, d_k))\n"
                         "    return tuple(x * rng.choice([0.8, 1.2]))").replace(
                             "d_k=2, tokens=2", "d_k=8, tokens=8"),
                     "blocks drawn in one call are too alike in their sizes"),
    "antithetic": (law("Antithetic", "def draw(self, rng, blocks, tokens, d_k):\n"
                       "    x = rng.standard_normal((2, blocks, tokens, d_k))\n"
                       "    x[:, 1::2] = -x[:, ::2][:, :blocks // 2]\n    return tuple(x)"),
                   "blocks drawn in one call are too unlike in their entries"),
    "moments_break": (law("Breaks", "def moments(self, d_k): return laws.normal.moments(d_k)[0]"),
                      "moments(2) is broken: TypeError"),
    "moments_draw": (law("Draws", "def moments(self, d_k):\n    default_rng(0)\n"
                         "    return laws.normal.moments(d_k)"),
                     "moments(2) makes a generator of random numbers"),
    "moments_shape": (law("Shapes", "def moments(self, d_k):\n"
                          "    return Moments(0.0, 0.0, *np.zeros((3, d_k, d_k)))"),
                      "moments(2).mean_q has shape (); it must be (2,)"),
    "mean_law": (law("Mean", "def moments(self, d_k): return laws.shifted(laws.normal, 0.1)"
                 ".moments(d_k)"), "moments(2).mean_q of the sum of coordinates"),
    "cov": (law("Cov", "def moments(self, d_k): return laws.equicorrelated(laws.normal, 0.3)"
                ".moments(d_k)"), "moments(2).cov_q of "),
    "skew_cov": (law("Skew", "def moments(self, d_k):\n    m = laws.normal.moments(d_k)\n"
                     "    return dataclasses.replace(m, cov_k=m.cov_k + np.triu(m.cov_k + 1, 1))"),
                 "moments(2).cov_k is not symmetric"),
    "cross": (law("Cross", "coupled: bool = True\ndef moments(self, d_k): "
                  "return laws.correlated(laws.normal, 0.1).moments(d_k)"),
              "moments(2).cross of coordinate"),
    "cross_uncoupled": (law("Torn", "def moments(self, d_k): "
                            "return laws.correlated(laws.normal, 0.1).moments(d_k)"),
                        "moments(2).cross is not 0, but coupled is False"),
    "variance": (law("Endless", "def moments(self, d_k):\n    m = laws.normal.moments(d_k)\n"
                     "    return dataclasses.replace(m, cov_k=m.cov_k * np.inf)"),
                 "moments(2).cov_k is infinite, but finite_moments is inf"),
    "tied": (law("Tied", "def draw(self, rng, *shape):\n"
                 "    return laws.correlated(laws.normal, 0.2).draw(rng, *shape)"),
             "coupled is False, but a token's own q and k are correlated: the covariance of x of"),
    "tied_unseen": (law("Unseen", "def draw(self, rng, *shape):\n"
                        "    return laws.random_sign(laws.normal).draw(rng, *shape)"),
                    "the covariance of x²/(1 + x²) of"),
}
SEVERAL = {"part", "name", "moments_shape", "mean_law", "cov",
           "later"}  # two things, or both of q and of k
DOUBTS = {
    "half_deaf": (body("half_deaf", "return q"),
                  "the values stay the same when k is drawn anew, so the body asks in vain"),
    "file": (body("filed", "return q", asks="q", head="@claim(mean, equals=lambda: "
                  "len(Path('mine.txt').read_text()), within=absolute(9), over=WORLD)"),
             "equals opens mine.txt"),
    "load_csv": ("TRUTH = np.loadtxt('mine.csv').item()\n" + body("csv_", "return q", asks="q"),
                 "opens mine.csv while it is loaded"),
    "false": (body("false", "return q + 9", asks="q"), "but a first look at false-normal"),
    "near": (body("near", "return q * size", asks="q, size=1",
                  head="@claim(mean, at_most=2e-3, over=WORLD, controls=grid(size=2))"),
             "must be REFUTED, and a first look leaves it open: it is in"),
    "narrow": (body("narrow", "return q", asks="q",
                    head="@claim(mean, equals=0, within=absolute(1e-4), over=WORLD)"),
               "narrow: 1 of 1 cases may not be decided, such as narrow-normal-d_k:2-tokens:2"),
    "heavy": (body("heavy", "return q + k", asks="q, k", head="@claim(variance, equals=2, "
                   "within=relative(0.1), over=grid(law=laws.student_t(5), d_k=2))"),
              "the interval needs the moment of order 6"),
    "rigid": (body("rigid", "return q**2", asks="q", head="@claim(mean, equals=1, "
                   "within=relative(0.1), over=grid(law=laws.rademacher, d_k=2))"),
              "for a share or an identity use the statistic proportion"),
    "rare": (body("rare", "return q > 5", asks="q", head="@claim(mean.bounded, at_most=0.5, "
                  "over=WORLD, controls=grid(law=laws.shifted(laws.normal, 9.0)))"),
             "the values are the same in 512 blocks, and while they are nothing is decided"),
}


SOUND = """
from mcverify import printed
from mcverify.attention import matched_scores, rows, softmax
from mcverify.statistic import median, ratio, slope

@claim(proportion, at_least=0.99, over=grid(law=laws.normal, d_k=8, keys=4, tokens=4),
       controls=grid(factor=0.9))
def weights_sum_to_one(q, k, keys, factor=1.0):
    'An identity, true of every block.'
    return np.isclose(factor * softmax(rows(q, k, keys)).sum(axis=-1), 1)

@claim(ratio.of_degree(2), equals=1, within=absolute(0.1),
       over=grid(law=laws.laplace, d_k=[2, 8], tokens=4))
def a_ratio(q, k):
    'A ratio.'
    return q**2, k**2

@claim(slope(variance), equals=1, within=absolute(0.1),
       over=grid(law=laws.normal, d_k=16, tokens=4))
def a_slope(q, k, d_k):
    'A slope.'
    return [(d, scores(q[..., :d], k[..., :d])) for d in (2, 16)]

@claim(median, equals=0, within=absolute(0.1),
       over=grid(law=laws.stable(1.0), d_k=[1, 4], tokens=4))
def a_median(q):
    'Of a law without a mean.'
    return q[:, :8]

@claim(variance, equals=1, within=relative(0.1), over=grid(law=laws.student_t(3), d_k=2),
       expect=Verdict.INCONCLUSIVE)
def an_open_one(q, k):
    'Needs moments that do not exist.'
    return scores(q, k)

@claim(mean, equals=lambda law, d_k: np.trace(law.moments(d_k).cross), within=absolute(0.2),
       over=grid(law=[laws.correlated(laws.normal, 0.3), laws.identical(laws.uniform)], d_k=8,
                 tokens=4))
def a_coupled_one(q, k, rng):
    'Of a token with itself, and some noise.'
    return matched_scores(q, k) + 0.1 * rng.standard_normal((len(q), 1))

@claim(mean, at_most=0, over=WORLD, expect=Verdict.REFUTED)
def a_false_one(q):
    'Squares are not positive.'
    return q**2

@cache
def text():
    return Path(__file__).read_text()  # code is no measured number

@claim(exact, equals=lambda x: printed("0.71") if text() else 0, over=grid(x=[0.5, 0.501]))
def a_calculation(x):
    'The root of a half.'
    return math.sqrt(x)
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """All that is said of the files above, by file."""
    folder = tmp_path_factory.mktemp("faulty")
    for name, (text, _) in (FAULTS | DOUBTS | {"sound": (SOUND, "")}).items():
        (folder / f"{name}.py").write_text(HEAD + text)
    (folder / "results").mkdir()
    for file in ("results/old.txt", "mine.csv", "mine.txt"):
        (folder / file).write_text("0.5")
    before = os.getcwd(), np.random.get_state()[1].copy()  # noqa: NPY002
    os.chdir(folder)
    try:
        remarks = inspect(folder, *(BUILT_IN / f"{theme}.py" for theme in THEMES))
    finally:
        os.chdir(before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    found = {}
    for remark in remarks:
        found.setdefault(remark.place.split(".py")[0], []).append(remark)
    assert found.keys() == {"sound", *FAULTS, *DOUBTS, *THEMES}
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_problem_of_its_file(said, name):
    problems = [remark for remark in said[name] if isinstance(remark, Problem)]
    assert any(FAULTS[name][1] in remark.message for remark in problems), said[name]
    assert len(problems) == 1 or name in SEVERAL, problems
    assert not ok(said[name])


@pytest.mark.parametrize("name", DOUBTS)
def test_a_doubt_is_a_warning(said, name):
    doubts = [remark for remark in said[name] if isinstance(remark, Doubt)]
    assert any(DOUBTS[name][1] in remark.message for remark in doubts), said[name]
    # Of some neither the claim nor its controls can be decided.
    assert len(doubts) == 1 + (name in ("narrow", "rigid", "rare")), doubts
    assert ok(said[name])


def test_sound_claims_have_notes_alone(said):
    assert {type(remark) for remark in said["sound"]} == {Note}, said["sound"]
    assert len(said["sound"]) == SOUND.count("@claim")
    assert "a_calculation: calculations: 2, about" in report(said["sound"])
    assert "an_open_one: cases: 1, expected blocks each: 0," in report(said["sound"])
    assert report(said["sound"]).endswith("0 problems, 0 warnings")


@pytest.mark.parametrize(("name", "line"), [
    ("nan", FIRST),  # of the decorator
    ("margin", FIRST),
    ("seeded", FIRST),  # of the prediction
    ("twice", FIRST),
    ("replaced", FIRST),
    ("nested", FIRST + 1),
    ("part", FIRST + 1),
    ("mean_law", FIRST + 2),  # of moments
    ("infinite", FIRST + 2),  # of draw
    ("bound", FIRST),
])
def test_a_problem_has_the_line_that_is_to_be_changed(said, name, line):
    remark = next(remark for remark in said[name]
                  if isinstance(remark, Problem) and FAULTS[name][1] in remark.message)
    assert remark.place == f"{name}.py:{line}"
    assert str(remark) == f"{name}.py:{line}: problem: {remark.message}"


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(ClaimError, match="no such Python file or folder"):
        inspect(tmp_path / "mine.py")


def test_what_cannot_be_pickled_is_a_problem():
    claim = discover(BUILT_IN / "variance.py")[0]

    def spread(function, calls):
        raise PicklingError("cannot pickle a lock")

    found = bodies.look(claim, claim.cases()[:1], {}, spread)
    assert [remark.message for remark in found] == [
        "product_mean: cannot be taken to another process: PicklingError: cannot pickle a lock "
        "(test_conformance.py, line 431); keep what its grid and its body hold simple"]


@pytest.mark.parametrize("theme", THEMES)
def test_built_in_claims_have_no_problems(said, theme):
    assert [remark for remark in said[theme] if not isinstance(remark, Note)] == []
    assert len(said[theme]) == len(discover(BUILT_IN / f"{theme}.py"))


# --- laws -------------------------------------------------------------------------------------

SOUND_LAWS = [
    laws.normal, laws.rademacher, laws.laplace, laws.exponential, laws.sparse(0.01),
    laws.student_t(3), laws.stable(0.5), laws.shifted(laws.correlated(laws.uniform, 0.6), 5.0),
    laws.identical(laws.exponential), laws.random_sign(laws.normal),
    laws.common_scale(laws.normal, 5), laws.layer_norm(laws.exponential),
    laws.independent(laws.laplace, laws.equicorrelated(laws.rademacher, 0.5)),
    laws.autoregressive(laws.laplace, 0.9), laws.rotary(laws.identical(laws.normal), 3),
    laws.topic(laws.normal, 0.5), laws.shared_query(laws.laplace), laws.memory(laws.normal, 0.9),
]


@pytest.mark.parametrize("law", SOUND_LAWS, ids=str)
def test_sound_laws_are_not_blamed(law):
    case = discover(BUILT_IN / "variance.py")[0].cases()[0]
    assert law_checks.look(World(law, 4, 5), case, [], 1e-6) == (True, [])


@pytest.mark.parametrize(("law", "what"), [
    (laws.normal, None),
    (laws.shifted(laws.normal, 0.2), "mean_q"),
    (laws.scaled(laws.normal, 1.0, 1.2), "cov_k"),
    (laws.unequal(laws.normal, 0.5), "cov_q"),
    (laws.equicorrelated(laws.normal, 0.2), "cov_q"),
])
def test_draws_contradict_the_moments_of_another_law(law, what):
    world = World(law, 16, 8)
    found = [*moments._against_draws(world, laws.normal.moments(16), 1e-6)]
    assert found == [] if what is None else any(f"moments(16).{what} of" in text for text in found)


def test_moments_that_are_not_known_are_not_compared():
    unknown = Moments(*np.full((2, 4), np.nan), *np.full((3, 4, 4), np.nan))
    world = World(laws.shifted(laws.laplace, 3.0), 4, 8)
    assert [*moments._against_draws(world, unknown, 1e-6)] == []
    known = dataclasses.replace(unknown, mean_q=np.array([3.0, np.nan, 0.0, np.nan]))
    [text] = moments._against_draws(world, known, 1e-6)
    assert text.startswith("moments(4).mean_q of coordinate 2 is declared 0, and the draws have it")


@pytest.mark.parametrize(("df", "told"), [(2.5, []), (5.0, ["mean_q", "mean_k"]),
                                          (30.0, ["mean_q", "mean_k", "cov_q", "cov_k"])])
def test_nothing_is_compared_that_needs_moments_which_the_law_lacks(df, told):
    wrong = laws.shifted(laws.scaled(laws.normal, 2.0, 2.0), 9.0).moments(4)
    found = moments._against_draws(World(laws.student_t(df), 4, 8), wrong, 1e-6)
    assert [text.split(" of ")[0].partition(".")[2] for text in found] == told


def test_moments_along_a_direction_are_those_of_the_projected_vector():
    rows = moments._directions(20)
    assert rows.shape == (10, 20)
    assert np.allclose((rows**2).sum(axis=1), 1)
    half = np.random.default_rng(0).standard_normal((20, 20))
    mean, cov = half[0], half @ half.T
    assert np.allclose(moments._seen_from(rows, cov), rows @ cov @ rows.T)
    cov[3, 4] = mean[3] = np.nan  # the sums need it, single coordinates but one do not
    assert np.isnan(moments._seen_from(rows, mean)).tolist() == [
        bool(row[3]) for row in rows]
    assert np.isnan(moments._seen_from(rows, cov)).sum() == sum(
        bool(a[3] and b[4]) for a in rows for b in rows)


# --- predictions ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [
    lambda: np.random.default_rng(0),
    lambda: default_rng(),
    lambda: np.random.RandomState(1),
    lambda: np.random.Generator(np.random.Philox(1)),
    lambda: copy.deepcopy(OLD),
    lambda: OLD.spawn(1),
    lambda: random.Random(3),
    lambda: laws.normal.draw(default_rng(0), 1, 1, 1),
])
def test_making_a_generator_is_seen_by_whatever_route(make):
    with drawing([]) as drew, pytest.raises(Drawn):
        make()
    assert drew == ["makes a generator of random numbers"]
    make()  # outside of it as ever


@pytest.mark.parametrize("draw", [
    lambda: OLD.normal(), lambda: np.random.normal(), lambda: random.random(),  # noqa: NPY002
    lambda: random.seed(0), lambda: np.random.seed(0),  # noqa: NPY002
])
def test_drawing_from_an_old_generator_is_seen_and_undone(draw):
    states = [OLD.bit_generator.state, np.random.get_state()[1].tolist(),  # noqa: NPY002
              random.getstate()]
    with drawing(generators()) as drew, contextlib.suppress(Drawn):
        draw()
    assert len(drew) >= 1
    assert states == [OLD.bit_generator.state, np.random.get_state()[1].tolist(),  # noqa: NPY002
                      random.getstate()]


def test_what_needs_no_random_numbers_is_not_seen(tmp_path, monkeypatch):
    from scipy.integrate import quad

    (tmp_path / "makes_one_on_import.py").write_text("import random\nR = random.Random(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with drawing(generators()) as drew, reading() as read:
        quad(np.cos, 0, 1)
        OLD.bit_generator.state  # noqa: B018
        PROJECTED.moments(2)  # fixed weights
        importlib.import_module("makes_one_on_import")
    assert (drew, read) == ([], [])


@pytest.mark.parametrize(("name", "kind"), [
    ("mine.csv", "csv"), ("results/run.json", "results"), ("results/claims/a.csv", "results"),
    ("out/verdicts.csv", "results"), ("out/claims/a.txt", "results"), ("notes.txt", "file"),
])
def test_files_are_told_apart(tmp_path, name, kind):
    (tmp_path / "out" / "claims").mkdir(parents=True)
    (tmp_path / "out" / "verdicts.csv").write_text("")
    (tmp_path / "results" / "claims").mkdir(parents=True)
    file = tmp_path / name
    file.write_text("1")
    with reading() as read:
        file.read_text()
        os.close(os.open(file, os.O_RDONLY))
        Path(__file__).read_text()  # code
        Path(pytest.__file__).with_name("py.typed").read_text()  # installed
    assert read == [(f"opens {file}", kind)]
    file.read_text()  # outside of it nothing is noted
    assert len(read) == 1


# --- costs ------------------------------------------------------------------------------------


def test_blocks_are_foreseen_from_margin_and_spread():
    [case] = Claim("mine", "A sentence.", mean, lambda q: q, equals=1.0, within=absolute(0.1),
                   over=grid(law=laws.normal, d_k=8)).cases()
    table = np.array([[0.0], [2.0]] * 5000)  # mean 1, standard deviation 1, no skewness
    blocks, reason = costs._needed(case, table)
    t = -float(ndtri(1e-10 / 12 / 2))
    assert blocks == pytest.approx((t / 0.1) ** 2, rel=1e-3)
    assert reason == ""
    assert costs._foreseen(case, table, 2.0) == costs.Cost(2.0, 8192, "")  # the next look
    loose = dataclasses.replace(case.claim, within=absolute(10.0)).cases()[0]
    assert costs._needed(loose, table)[0] == pytest.approx(8 * t * t)  # for so small a rate
    tight = dataclasses.replace(case.claim, within=absolute(1e-4)).cases()[0]
    assert costs._foreseen(tight, table, 2.0).reason.startswith("about 4.7e+09 blocks would be")


def test_blocks_of_a_share_are_those_of_chernoffs_bound():
    [case] = Claim("mine", "A sentence.", proportion, lambda q: q, at_least=0.99,
                   over=grid(law=laws.normal, d_k=8)).cases()
    blocks, _ = costs._needed(case, np.ones((4096, 1)))
    # Blocks that are all 1 bound the share from below by (rate/2)^(1/blocks).
    assert 0.99**blocks == pytest.approx(1e-10 / 12 / 2)


@pytest.mark.parametrize("name", ["product_variance", "dot_variance"])
def test_what_is_foreseen_is_what_a_run_takes(name):
    claims = {claim.name: claim for claim in discover(BUILT_IN / "variance.py")}
    for case in claims[name].cases():
        if dict(case.settings)["law"] in (laws.normal, laws.uniform) and (
                dict(case.settings)["d_k"] == 8):
            foreseen = costs._cost(case)
            assert 1 / 4 <= foreseen.blocks / check(case).blocks <= 4
