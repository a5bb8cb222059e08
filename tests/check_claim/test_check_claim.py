"""Each fault that a claim, a statistic or a law can have is told by its line; sound ones are not.

All files stand in one folder, and are looked at once.
"""

import shutil
import textwrap
from dataclasses import dataclass
from pickle import PicklingError

import numpy as np
import pytest

from mcverify import Claim, absolute, check, discover, grid, laws
from mcverify.check_claim import forecast, inspect, ok, report, values
from mcverify.check_claim import laws as law_checks
from mcverify.declare.fault import ClaimError
from mcverify.declare.origins import BUILT_IN
from mcverify.judge.sample import sample
from mcverify.judge.watch import Watch
from mcverify.judge.world import World
from mcverify.statistic import mean, proportion

HEAD = """\
import dataclasses, math, os, random, signal, sys, time
from dataclasses import dataclass
import numpy as np
from numpy.random import default_rng
from mcverify import Verdict, absolute, claim, grid, laws, printed, relative
from mcverify.attention import matched_scores, rows, scores, softmax
from mcverify.laws import Moments
from mcverify.statistic import exact, kurtosis, mean, median, proportion, ratio, slope, variance

WORLD = grid(law=laws.normal, d_k=2, tokens=2)
wide = dict(equals=0, within=absolute(0.5), over=WORLD)

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


def body(*lines, asks="q", head="@claim(mean, **wide)"):
    """A claim on the mean of q that does something else first."""
    text = "".join(f"    {line}\n" for line in lines)
    return f'{head}\ndef NAME({asks}):\n    """A sentence."""\n{text}'


def returns(value, asks="q", over="WORLD", says="equals=0, within=absolute(9)", of="mean"):
    """A claim on what is returned."""
    return body(f"return {value}", asks=asks, head=f"@claim({of}, {says}, over={over})")


def calculates(value, says="equals=1, within=absolute(0.1)"):
    return body(f"return {value}", asks="", head=f"@claim(exact, {says})")


def law(*lines, d_k=2):
    """A law that breaks a rule, and a claim on it."""
    return ("@dataclass(frozen=True)\nclass Law_NAME(Base):\n"
            + textwrap.indent("\n".join(lines), "    ") + "\n"
            + returns("q", over=f"grid(law=Law_NAME(), d_k={d_k}, tokens=4)"))


def draws(text, d_k=2):
    return law("def draw(self, rng, blocks, tokens, d_k):",
               "    x = rng.standard_normal((2, blocks, tokens, d_k))", f"    {text}", d_k=d_k)


def declares(text, *lines, d_k=2):
    return law(*lines, "def moments(self, d_k):", "    m = laws.normal.moments(d_k)",
               f"    return {text}", d_k=d_k)


def influence(text):
    return (f"def influence(table):\n    value, values = mean.influence(table)\n"
            f"    return value, {text}\nMINE = dataclasses.replace(mean, influence=influence)\n"
            + returns("q ** 3", of="MINE"))


FAULTS = {  # what is wrong -> the file, and what is said of it
    "raises": (returns("q[:, 99]"), "IndexError: index 99 is out of bounds"),
    "nans": (returns("np.where(q > 0, q, np.nan)"), "NaN or infinite values out of"),
    "wider": (returns("q if d_k == 2 else q / 0", "q, d_k", "grid(law=laws.normal, d_k=[2, 4])"),
              "at wider-normal-d_k:4: the body returned"),
    # other numbers, from the same draws
    "counts": ("calls = []\n" + body("calls.append(0)", "return q + (len(calls) > 2)"),
               "measured a second time it has another value from the same draws"),
    "late": (calculates("time.perf_counter()", "at_least=0.6, expect=Verdict.REFUTED"),
             "late: measured in another process it has another value"),
    "gridded": (returns("q", "q, pid", over="grid(law=laws.normal, d_k=2, pid=os.getpid())"),
                "measured in another process it has another name"),
    "argued": ("assert sys.argv[0]\n" + returns("q"), "does not load in another process; argued."
               f"py:{FIRST}: AssertionError"),
    "dies": (returns("os.kill(os.getpid(), signal.SIGKILL)"), "was killed (SIGKILL(-9))"),
    "foretold": (returns("q", says="equals=lambda: os.getpid(), within=absolute(9)"),
                 "measured in another process it has another prediction"),
    "waits": ("seen = []\n" + body("seen.append(0)", "return q", head="@claim(mean, over=WORLD, "
              "equals=lambda: min(len(seen), 1), within=absolute(9))"),
              "measured a second time it has another prediction"),
    "crashes": (returns("q", says="equals=lambda d_k: 1 / (d_k - 2), within=absolute(9)"),
                "at crashes-normal-d_k:2-tokens:2: ZeroDivisionError: division by zero (crashes"),
    "globally": (returns("q + random.random()"), "the body used the global random state"),
    # blocks that depend on each other
    "centred": (returns("q - q.mean(axis=0)"), "other values when other blocks stand beside it"),
    "noisy": (returns("q + rng.standard_normal()", "q, rng", says="equals=0, within=absolute(1)"),
              "makes blocks that depend on each other"),
    # nothing is measured
    "constant": (returns("np.full(len(q), 0.1)"), "stay the same whatever q is, so the body asks"),
    # what a file declares
    "part": ("@dataclass(frozen=True)\nclass Part:\n    coupled: bool = False\n"
             "    def draw(self, rng, *shape): ...\n" + returns("q", over="grid(law=Part())"),
             "law=Part(coupled=False) is not a law; use laws.normal or another value of mcverify."
             "laws, or give it moments, finite_moments"),
    "syntax": ("def broken(:\n", "SyntaxError"),
    "twice": (returns("q") + returns("-q"), f"this name in line {FIRST + 5} replaces it"),
    "zz_clash": (calculates("1.0").replace("NAME", "calculation"),
                 "two claims are named calculation, the other in"),
    # statistics
    "unit": (influence("values / 1000"), "let each be what its block adds to the estimate"),
    "off_centre": (influence("values + 1"), "have mean 1; it must be 0"),
    # what can refute it
    "bound": (returns("q", says="at_most=1"), "no control shows that anything can refute it"),
    "control": (returns("q * size", "q, size=1", says="at_most=1, controls=grid(size=2)"),
                "the control control-normal-d_k:2-tokens:2-control-size:2 must be REFUTED, but"),
    "control_breaks": (returns("q[:, size]", "q, size=1", says="at_most=1, controls=grid(size=2)"),
                       "control-size:2 is broken: IndexError"),
    # draws of laws
    "later": (draws("return tuple(np.where(x > 3.9, np.nan, x))"), "with NaN or infinite entries"),
    "law_global": (draws("return tuple(np.random.standard_normal(x.shape))"),
                   "used the global random state"),
    "law_unseeded": (draws("return tuple(default_rng().standard_normal(x.shape))"),
                     "measured in another process it has another value"),
    "law_seeded": (draws("return tuple(default_rng(0).standard_normal(x.shape))"),
                   "draws the same blocks again"),
    "shared": (draws("return tuple(0.6 * x + 0.8 * rng.standard_normal((2, 1, 1, d_k)))"),
               "makes blocks that depend on each other: pieces drawn apart vary more"),
    "shared_scale": (draws("return tuple(x * rng.choice([0.8, 1.2]))", d_k=8),
                     "makes blocks that depend on each other: pieces drawn apart vary more"),
    "antithetic": (draws("x[:, 1::2] = -x[:, ::2][:, :blocks // 2]; return tuple(x)"),
                   "makes blocks that depend on each other: pieces drawn apart vary less"),
    "tied": (draws("return laws.correlated(laws.normal, 0.2).draw(rng, blocks, tokens, d_k)"),
             "coupled is False, but coordinates of a token's own q and k rise together with a"),
    "tied_unseen": (draws("return laws.random_sign(laws.normal).draw(rng, blocks, tokens, d_k)"),
                    "coupled is False, but sizes of coordinates of a token's own q and k rise"),
    "tied_next": (draws("return x[0], np.roll(x[0], 1, axis=1)"),
                  "coupled is False, but neighbours, coordinates of a token's q and the next"),
    "namesakes": ("@dataclass(frozen=True)\nclass Namesake(Base):\n    rho: float\n" + returns(
        "q", over="grid(law=Namesake(0), d_k=2)") + returns(
        "q", over="grid(law=Namesake(1), d_k=2)").replace("def NAME", "def NAME_2"),
        "Namesake: another law has this name and is not equal to it"),
    # moments of laws
    "moments_shape": (declares("Moments(0.0, 0.0, *np.zeros((3, d_k, d_k)))"),
                      "moments(2) is broken: zero-dim"),
    "mean_law": (declares("laws.shifted(laws.normal, 0.1).moments(d_k)"), "moments(2).mean_q"),
    "cov": (declares("laws.equicorrelated(laws.normal, 0.3).moments(d_k)"), "moments(2).cov_"),
    "cross": (declares("laws.correlated(laws.normal, 0.2).moments(d_k)", "coupled: bool = True",
                       d_k=8),
              "moments(8).cov_q + cov_k + 2 cross along"),
}
SEVERAL = {"mean_law", "cov", "tied"}  # of q and of k, or of both together
DOUBTS = {
    "deaf": (returns("rng.random(len(q))", "q, rng", says="equals=0.5, within=absolute(9)"),
             "the same whatever q is, so the body asks for it in vain"),
    "unasked": (returns("q", over="grid(law=laws.normal, d_k=2, scal=0.5)"),
                "nothing looks at the setting scal; let the body or the prediction name it"),
    "half_deaf": (returns("q", "q, k"), "the same whatever k is, so the body asks for it in vain"),
    "idle": (returns("q", "q, size", "grid(law=laws.normal, d_k=2, size=[1, 2])"),
             "the same whatever size is, so the body asks for it in vain"),
    "false": (returns("q + 99"), "declared CONFIRMED, but a first look at false-normal"),
    "near": (returns("q * size", "q, size=1", says="at_most=2e-3, controls=grid(size=2)"),
             "a first look leaves the control near-normal-d_k:2-tokens:2-control-size:2 open: has"),
    "narrow": (returns("q", says="equals=0, within=absolute(1e-4)"),
               "narrow: 1 of 1 cases may not be decided, such as narrow-normal-d_k:2-tokens:2"),
    "heavy": (returns("q + k", "q, k", "grid(law=laws.student_t(5), d_k=2)",
                      "equals=2, within=relative(0.1)", "variance"),
              "the interval needs the moment of order 6"),
    "rigid": (returns("q**2", over="grid(law=laws.rademacher, d_k=2)",
                      says="equals=1, within=relative(0.1)"),
              "for an identity use the statistic proportion"),
    "rare": (returns("q > 5", of="mean.of_degree(0)", says="at_most=0.5, "
                     "controls=grid(law=laws.shifted(laws.normal, 9.0))"),
             "the values are the same in "),
}
SOUND = {
    "identity": returns(
        "np.isclose(factor * softmax(rows(q, k, keys)).sum(axis=-1), 1)", "q, k, keys, factor=1",
        "grid(law=laws.normal, d_k=8, keys=4, tokens=4)",
        "at_least=0.99, controls=grid(factor=0.9)", "proportion"),
    "quotient": returns("(q**2, k**2)", "q, k", "grid(law=laws.laplace, d_k=[2, 8], tokens=4)",
                        "equals=1, within=absolute(0.1)", "ratio.of_degree(2)"),
    "growth": returns("[(d, scores(q[..., :d], k[..., :d])) for d in (2, 16)]", "q, k",
                      "grid(law=laws.normal, d_k=16, tokens=4)",
                      "equals=1, within=absolute(0.1)", "slope(variance)"),
    "middle": returns("q[:, :8]", over="grid(law=laws.stable(1.0), d_k=[1, 4], tokens=4)",
                      says="equals=0, within=absolute(0.1)", of="median"),
    "open": returns("q + k", "q, k", "grid(law=laws.student_t(3), d_k=2)", "equals=2, within="
                    "relative(0.1), expect=Verdict.INCONCLUSIVE", "variance"),
    "coupled": returns("matched_scores(q, k) + 0.1 * size * rng.standard_normal((len(q), 1))",
                       "q, k, rng, size", "grid(law=laws.correlated(laws.normal, 0.3), d_k=8, "
                       "tokens=4, size=[1, 2])", "within=absolute(0.2), "
                       "equals=lambda law, d_k: np.trace(law.moments(d_k).cross)"),
    "refuted": returns("q**2", says="at_most=0, expect=Verdict.REFUTED"),
    "calculation": calculates("math.sqrt(0.5)", "equals=printed('0.71')"),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """All that is said of the files above, by file."""
    folder = tmp_path_factory.mktemp("faulty")
    texts = {name: text for name, (text, _) in (FAULTS | DOUBTS).items()}
    for name, text in (SOUND | texts).items():
        (folder / f"{name}.py").write_text(HEAD + text.replace("NAME", name))
    shutil.copy(BUILT_IN / "hand.py", folder)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    found = {}
    for remark in inspect(folder):
        found.setdefault(remark.place.split(".py")[0], []).append(remark)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert found.keys() == {*SOUND, *FAULTS, *DOUBTS, "hand"}
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_problem_of_its_file(said, name):
    problems = [remark for remark in said[name] if remark.kind == "problem"]
    assert any(FAULTS[name][1] in remark.message for remark in problems), said[name]
    assert len(problems) == 1 or name in SEVERAL, problems
    assert not ok(said[name])


@pytest.mark.parametrize("name", DOUBTS)
def test_a_doubt_is_a_warning(said, name):
    doubts = [remark for remark in said[name] if remark.kind == "warning"]
    assert any(DOUBTS[name][1] in remark.message for remark in doubts), said[name]
    # Of some neither the claim nor its controls can be decided.
    assert len(doubts) == 1 + (name in ("narrow", "rigid", "rare")), doubts
    assert ok(said[name])


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_claim_has_one_note(said, name):
    [note] = said[name]
    assert note.kind == "note", note
    assert report(said[name]).endswith("\nproblems: 0, warnings: 0")


def test_a_note_tells_what_a_run_takes(said):
    assert "calculation: cases: 1, expected blocks each: 1 to 1, about" in str(*said["calculation"])
    assert "open: cases: 1, expected blocks each: 0 to 0, about 0 s in all" in str(*said["open"])
    assert "coupled: cases: 2, expected blocks each: " in str(*said["coupled"])


@pytest.mark.parametrize(("name", "line"), [
    ("nans", FIRST),  # of the decorator
    ("twice", FIRST),
    ("bound", FIRST),
    ("later", FIRST + 2),  # of draw
    ("mean_law", FIRST + 2),  # of moments
])
def test_a_problem_has_the_line_that_is_to_be_changed(said, name, line):
    remark = next(remark for remark in said[name] if remark.kind == "problem")
    assert str(remark) == f"{name}.py:{line}: problem: {remark.message}"


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(ClaimError, match="no such Python file or folder"):
        inspect(tmp_path / "mine.py")


def test_how_many_blocks_there_was_time_for_is_no_difference():
    table = np.arange(6.0).reshape(3, 2)
    assert values._same(table, table[:1] * (1 + 1e-12))
    assert not values._same(table[:1], table + 1)


def test_built_in_claims_have_no_problems(said):
    assert {remark.kind for remark in said["hand"]} == {"note"}, said["hand"]
    assert len(said["hand"]) == len(discover(BUILT_IN / "hand.py"))


def claim_on(law=laws.normal, d_k=8, within=0.1):
    return Claim("mine", "A sentence.", mean, lambda q: q, equals=1.0, within=absolute(within),
                 over=grid(law=law, d_k=d_k))


def test_what_cannot_be_pickled_is_told():
    def spread(function, calls, on_begin=None):
        raise PicklingError("cannot pickle a lock")

    [remark] = values.check(claim_on(), claim_on().cases(), spread, Watch())
    assert "cannot be taken to another process: PicklingError: cannot pickle" in remark.message


@dataclass(frozen=True)
class Mine:
    """A user's law that draws from one and declares the moments of another."""

    drawn: laws.Law
    declared: laws.Law
    coupled = property(lambda self: self.drawn.coupled)
    finite_moments = property(lambda self: self.drawn.finite_moments)

    def __str__(self):
        return f"mine[{self.drawn}-{self.declared}]"

    def draw(self, *shape):
        return self.drawn.draw(*shape)

    def moments(self, d_k):
        return self.declared.moments(d_k)


def told(drawn, declared, d_k):
    """What is said of a law, by the part that is wrong."""
    _, remarks = law_checks.check([claim_on(Mine(drawn, declared), d_k)], Watch())
    return [remark.message.partition(": ")[2].partition(" along")[0] for remark in remarks]


@pytest.mark.parametrize("law", [
    laws.normal, laws.rademacher, laws.exponential, laws.sparse(0.1), laws.student_t(3),
    laws.stable(0.5), laws.shifted(laws.correlated(laws.uniform, 0.6), 5.0),
    laws.identical(laws.exponential), laws.random_sign(laws.normal), laws.layer_norm(laws.normal),
    laws.common_scale(laws.normal, 15), laws.topic(laws.normal, 0.5), laws.memory(laws.normal, 0.9),
    laws.independent(laws.laplace, laws.equicorrelated(laws.rademacher, 0.5)),
], ids=str)
def test_sound_laws_are_not_blamed(law):
    assert told(law, law, d_k=[1, 4]) == []


@pytest.mark.parametrize(("declared", "part"), [
    (laws.shifted(laws.normal, 0.2), "mean_q"), (laws.scaled(laws.normal, 1.0, 1.2), "cov_k"),
    (laws.unequal(laws.normal, 2.0), "cov_q"), (laws.equicorrelated(laws.normal, 0.2), "cov_q"),
    (laws.correlated(laws.normal, 0.2), "cov_q + cov_k + 2 cross"),
])
def test_draws_contradict_the_moments_of_another_law(declared, part):
    assert f"moments(16).{part}" in told(laws.normal, declared, d_k=16)


def test_nothing_is_compared_that_is_not_known_or_needs_moments_which_the_law_lacks():
    wrong = laws.shifted(laws.scaled(laws.normal, 2.0, 2.0), 9.0)
    assert told(laws.student_t(2.5), wrong, d_k=4) == []
    assert told(laws.student_t(5.0), wrong, d_k=4) == ["moments(4).mean_q", "moments(4).mean_k"]
    assert told(laws.normal, laws.student_t(1.0), d_k=4) == []  # all nan


def test_laws_of_mcverify_alone_are_left_to_its_own_tests():
    assert law_checks._worlds([claim_on(laws.shifted(laws.normal, 1.0))], Watch()) == {}
    made = laws.shifted(Mine(laws.normal, laws.normal), 1.0)
    [world] = law_checks._worlds([claim_on(made, d_k=[2, 64])], Watch())
    assert world == World(made, 2, law_checks.TOKENS)  # the other one is too wide


@pytest.mark.parametrize(("within", "blocks", "reason"), [
    # The rate of a look is 3.7e-12: 6.9 standard errors, of which 4,876 blocks make 0.1.
    (0.1, 6144, ""), (10.0, 512, ""), (1e-4, 2**20, "about 4.9e+09 blocks would be needed, and"),
])
def test_blocks_are_foreseen_from_margin_and_spread(within, blocks, reason):
    table = np.array([[0.0], [2.0]] * 50)  # mean 1, standard deviation 1, no skewness
    found, why = forecast.foreseen(*claim_on(within=within).cases(), mean, table)
    assert found == blocks
    assert why.startswith(reason)


def test_blocks_of_an_identity_are_those_of_its_bound():
    [case] = Claim("mine", "A sentence.", proportion, lambda q: q > -99, at_least=0.99,
                   over=grid(law=laws.normal, d_k=8)).cases()
    assert forecast.foreseen(case, proportion, np.ones((64, 1))) == (check(case).blocks, "")


def test_what_is_foreseen_is_what_a_run_takes():
    claims = {claim.name: claim for claim in discover(BUILT_IN / "variance.py")}
    for case in claims["product_variance"].cases():
        if case.drawn["law"] in (laws.normal, laws.uniform) and case.drawn["d_k"] == 8:
            blocks, _ = forecast.foreseen(case, *sample(case, 64))
            assert 1 / 4 <= blocks / check(case).blocks <= 4
