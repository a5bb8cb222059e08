"""From two intervals, the claimed and the measured one, to a verdict; and what errors may cost."""

from enum import StrEnum

FIRST_LOOK = 128  # enough for a theorem and a wide margin; a calibrated interval needs 512
LOOKS = 27
CASE_ERROR_RATE = 1e-10
SUITE_ERROR_RATE = 1e-6
LEAST_RATE = 2.0**-128  # of one of the states that the random generator may begin from


class Verdict(StrEnum):
    """What the draws say of a claim."""

    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    INCONCLUSIVE = "INCONCLUSIVE"


# Of pictures, pages and terminals, which a colour-blind reader can tell apart.
COLOURS = {"CONFIRMED": "#0072b2", "REFUTED": "#c25400", "INCONCLUSIVE": "#6b7680",
           "ERROR": "#8b0020"}


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


def looks() -> list[tuple[int, int]]:
    """The blocks that each look adds, as (start, stop): the first 128, then by turns half and a
    third more.

    >>> looks()[:4], looks()[-1][1]
    ([(0, 128), (128, 192), (192, 256), (256, 384)], 1048576)
    """
    stops = [FIRST_LOOK * (2 + look % 2) * 2 ** (look // 2) // 2 for look in range(LOOKS)]
    return list(zip([0, *stops[:-1]], stops, strict=True))


def look_rate(error_rate: float, anytime: bool = False) -> float:
    """What a look may spend of a case's error rate: its share, or all if the interval holds at all
    looks together.

    >>> look_rate(2.7e-9), look_rate(2.7e-9, anytime=True)
    (1e-10, 2.7e-09)
    """
    return error_rate if anytime else error_rate / LOOKS


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
