"""What a run is at and how much of it is left, for who waits for it in another thread."""

import math
import time
from dataclasses import dataclass, field

from mcverify.statistic import Estimate
from mcverify.verdict import FIRST_LOOK, looks


@dataclass
class Watch:
    """Filled by ``run`` as it goes; costs are in a unit that grows as time does.

    Attributes
    ----------
    at_work : by the index of a call, the case that is measured and since when.
    done : what has been measured.
    first, foreseen : of the cases that were looked at, what their first look and all of them cost.
    unseen : what the first look at the other cases will cost.
    """

    at_work: dict[int, tuple[str, float]] = field(default_factory=dict)
    done: float = 0.0
    first: float = 0.0
    foreseen: float = 0.0
    unseen: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def at(self, index: int, case: str) -> None:
        """A call has come to a case."""
        self.at_work[index] = case, time.monotonic()

    def ended(self, index: int, cost: float) -> None:
        """A call has given its result."""
        self.at_work.pop(index, None)
        self.done += cost

    def foresee(self, cost: float, before: int, last: int) -> None:
        """A case, of which a block costs so much, is foreseen to take ``last`` blocks in all.

        ``before`` is what was foreseen of it, 0 until its first look.
        """
        if not before:
            self.unseen -= cost * FIRST_LOOK
            self.first += cost * FIRST_LOOK
        self.foreseen += cost * (last - before)

    @property
    def seconds_left(self) -> float:
        """At the speed so far, with cases unseen as those that were seen; nan before the first."""
        if not (self.done and self.first):
            return math.nan
        total = self.foreseen * (1 + self.unseen / self.first)
        return max(0.0, total / self.done - 1) * (time.monotonic() - self.started)


def wide(found: Estimate, claimed: tuple[float, float], farther: float = 0.0) -> float:
    """How many times as wide as may be the interval is, were the edges so much farther off.

    0 where it is not known.

    >>> wide(Estimate(1, 0.1, -2, 4), (0, 2)), wide(Estimate(1, 0.1, 0, 2), (0, 2), farther=1.0)
    (3.0, 0.5)
    """
    ratio = 0.0
    for edge in claimed:
        half = found.value - found.low if edge < found.value else found.high - found.value
        away = abs(found.value - edge) + farther
        if 0 < half < math.inf and away > 0:
            ratio = max(ratio, half / away)
    return ratio


def last_block(found: Estimate, claimed: tuple[float, float], blocks: int) -> int:
    """The end of the look at which a verdict is foreseen, an interval narrowing as 1/√blocks.

    It is after this one, of so many blocks, and at most the last there is.

    >>> last_block(Estimate(1.0, 0.1, 0.4, 1.6), (0.8, 1.2), 512)
    6144
    """
    needed = blocks * wide(found, claimed) ** 2
    ends = [stop for _, stop in looks() if stop > blocks]
    return next((stop for stop in ends if stop >= needed), ends[-1])
