"""From two intervals, the claimed and the measured one, to a verdict; and what errors may cost."""

from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache

FIRST_LOOK = 128  # enough for a theorem and a wide margin; a calibrated interval needs 512
LOOKS = 27
MAX_BLOCKS = 2**20  # at the last of them
ROWS = 2**16  # of block values, beyond which a long run takes blocks together
CASE_ERROR_RATE = 1e-10
SUITE_ERROR_RATE = 1e-6
LEAST_RATE = 2.0**-128  # of one of the states that the random generator may begin from


class Verdict(StrEnum):
    """What the draws say of a claim."""

    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    INCONCLUSIVE = "INCONCLUSIVE"


ERROR = "ERROR"  # stands in the place of a verdict where the case broke instead of measuring
OUTCOMES = (*map(str, Verdict), ERROR)

# Of pictures, pages and terminals, which a colour-blind reader can tell apart.
COLOURS = {"CONFIRMED": "#0072b2", "REFUTED": "#c25400", "INCONCLUSIVE": "#6b7680",
           ERROR: "#8b0020"}


def judge(measured: tuple[float, float], claimed: tuple[float, float]) -> Verdict:
    """CONFIRMED if measured lies inside claimed, REFUTED if they are disjoint.

    If the claim is false, the truth lies outside the claimed interval, so CONFIRMED needs the
    measured one to miss the truth; if it is true, so does REFUTED. Both are as rare as a miss.

    >>> [str(judge(measured, (0.8, 1.2))) for measured in [(0.9, 1.1), (1.3, 1.4), (1.1, 1.3)]]
    ['CONFIRMED', 'REFUTED', 'INCONCLUSIVE']
    """
    if claimed[0] <= measured[0] and measured[1] <= claimed[1]:
        return Verdict.CONFIRMED
    if measured[1] < claimed[0] or claimed[1] < measured[0]:
        return Verdict.REFUTED
    return Verdict.INCONCLUSIVE


def overall(verdicts: list[Verdict]) -> Verdict:
    """The verdict on a claim from those on its cases: one refuted case refutes the claim.

    >>> overall([Verdict.CONFIRMED, Verdict.INCONCLUSIVE])
    <Verdict.INCONCLUSIVE: 'INCONCLUSIVE'>
    """
    for verdict in (Verdict.REFUTED, Verdict.INCONCLUSIVE):
        if verdict in verdicts:
            return verdict
    return Verdict.CONFIRMED


@lru_cache(maxsize=64)
def looks(max_blocks: int = MAX_BLOCKS) -> tuple[tuple[int, int], ...]:
    """The blocks that each look adds, as (start, stop): the first 128, then by turns half and a
    third more, as long as no more than ``max_blocks`` are drawn in all.

    >>> looks()[:4], looks()[-1][1], looks(200)
    (((0, 128), (128, 192), (192, 256), (256, 384)), 1048576, ((0, 128), (128, 192)))
    """
    spans = [(0, FIRST_LOOK)]
    while (after := FIRST_LOOK * (2 + len(spans) % 2) * 2 ** (len(spans) // 2) // 2) <= max_blocks:
        spans.append((spans[-1][1], after))
    return tuple(spans)


def look_rate(error_rate: float, anytime: bool = False, max_blocks: int = MAX_BLOCKS) -> float:
    """What a look may spend of a case's error rate: its share, or all if the interval holds at all
    looks together.

    However many looks a run may take, each gets the same share, so that they sum to the rate.

    >>> look_rate(2.7e-9), look_rate(2.7e-9, anytime=True), look_rate(3e-10, max_blocks=256)
    (1e-10, 2.7e-09, 1e-10)
    """
    return error_rate if anytime else error_rate / len(looks(max_blocks))


def check_rate(error_rate: float) -> None:
    """Raise ValueError unless an error rate is between 0 and 1, and one that draws can bear.

    The blocks of the last look would decide at every rate that double precision can write. But all
    draws of a seed descend from one of 2^128 states, and what may happen at all happens in one.
    """
    if not 0 < error_rate < 1:
        raise ValueError(f"error rate {error_rate}: must be between 0 and 1; use e.g. 1e-10")
    if error_rate < LEAST_RATE:
        raise ValueError(
            f"error rate {error_rate:g}: the smallest that can be decided is {LEAST_RATE:.0e}, for "
            f"{looks()[-1][1]} blocks would do for less, but their draws come from one of 2^128 "
            f"states of the random generator; ask for {LEAST_RATE:.0e} or more")


@dataclass(frozen=True)
class Terms:
    """On what terms a run judges, the same for all its cases; a results folder keeps to them.

    Attributes
    ----------
    seed : all draws descend from it.
    error_rate : how often at most the verdict on a case may be false.
    margin_scale : what every margin is multiplied by, above 0 and at most 1.
    max_blocks : there is no look beyond so many blocks.

    Raises ValueError for a number that is none of these.
    """

    seed: int = 0
    error_rate: float = CASE_ERROR_RATE
    margin_scale: float = 1.0
    max_blocks: int = MAX_BLOCKS

    def __post_init__(self) -> None:
        if not (isinstance(self.seed, int) and self.seed >= 0):
            raise ValueError(f"seed={self.seed!r}: must be a whole number of at least 0")
        check_rate(self.error_rate)
        check_scale(self.margin_scale)
        if not (isinstance(self.max_blocks, int) and self.max_blocks >= FIRST_LOOK):
            raise ValueError(f"max_blocks={self.max_blocks!r}: must be a whole number of at least "
                             f"{FIRST_LOOK}, the blocks of the first look")

    @property
    def looks(self) -> tuple[tuple[int, int], ...]:
        """The blocks that each look of the run adds."""
        return looks(self.max_blocks)

    def look_rate(self, anytime: bool = False) -> float:
        """What a look of the run may spend of a case's error rate."""
        return look_rate(self.error_rate, anytime, self.max_blocks)

    @property
    def keeps_all(self) -> bool:
        """Whether a case keeps all block values: few come far at the usual margins and looks."""
        return self.margin_scale == 1 and self.max_blocks <= MAX_BLOCKS

    def merged(self, blocks: int) -> int:
        """How many blocks a case keeps as one, where it may, after so many blocks.

        All are kept apart at the usual margins, at which few cases come far. Else many do, and
        ROWS of them bound what they keep.

        >>> Terms().merged(2**20), Terms(margin_scale=0.05).merged(2**20)
        (1, 16)
        """
        return 1 if self.keeps_all else 2 ** (-(-blocks // ROWS) - 1).bit_length()

    @property
    def told(self) -> dict[str, int | float]:
        """The seed, and those of the others that are not the usual ones, by their names.

        >>> Terms(margin_scale=0.05).told
        {'seed': 0, 'margin_scale': 0.05}
        """
        return {each.name: getattr(self, each.name) for each in fields(self)
                if each.name == "seed" or getattr(self, each.name) != each.default}

    @property
    def options(self) -> list[str]:
        """The same as options of `mcverify run`.

        >>> Terms(margin_scale=0.05).options
        ['--seed 0', '--margin-scale 0.05']
        """
        return [f"--{name.replace('_', '-')} {value!r}" for name, value in self.told.items()]


def check_scale(margin_scale: float) -> None:
    """Raise ValueError unless margins may be judged so many times as wide as they are declared.

    A wider one would confirm what no claim says.
    """
    if not 0 < margin_scale <= 1:
        raise ValueError(f"margin scale {margin_scale:g}: must be above 0 and at most 1, for "
                         "margins only get tighter; use e.g. 0.05")


def check_budget(cases: int, error_rate: float = CASE_ERROR_RATE) -> None:
    """Raise ValueError unless the suite's error rate pays for so many cases.

    The chance of any false verdict is at most the sum over the cases, whatever their dependence.
    A case's rate is fixed, so that a new claim changes no other claim's verdict.
    """
    check_rate(error_rate)
    if cases * error_rate > SUITE_ERROR_RATE * (1 + 1e-9):
        raise ValueError(f"{cases} cases at an error rate of {error_rate:g} each cost "
                         f"{cases * error_rate:.3g}, more than the suite's {SUITE_ERROR_RATE:g}; "
                         "run fewer claims or smaller grids, or ask for a rate of at most "
                         f"{SUITE_ERROR_RATE / cases:.3g}")


def budget(cases: int, error_rate: float) -> str:
    """What a run spends of the suite's error budget.

    >>> budget(100, 1e-10)
    'error budget: 100 cases at 1e-10 spend 1e-08 of 1e-06, 9.9e-07 is left'
    """
    spent = cases * error_rate
    return (f"error budget: {cases} cases at {error_rate:g} spend {spent:.3g} of "
            f"{SUITE_ERROR_RATE:g}, {SUITE_ERROR_RATE - spent:.3g} is left")
