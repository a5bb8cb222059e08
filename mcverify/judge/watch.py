"""What a run is at and how much of it is left, for who waits for it in another thread."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mcverify.statistic import Estimate
from mcverify.verdict import FIRST_LOOK, MAX_BLOCKS, looks


@dataclass
class Watch:
    """Filled by ``run`` as it goes; costs are in a unit that grows as time does.

    Attributes
    ----------
    at_work : by the index of a call, what tells the case that is measured and since when.
    done : what has been measured; blocks : how many blocks that were.
    first, foreseen : of the cases that were looked at, what their first look and all of them cost.
    unseen : what the first look at the other cases will cost.
    """

    at_work: dict[int, Callable[[], tuple[str, float]]] = field(default_factory=dict)
    done: float = 0.0
    blocks: int = 0
    first: float = 0.0
    foreseen: float = 0.0
    unseen: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def at(self, index: int, case: str) -> None:
        """A call has come to a case."""
        since = time.monotonic()
        self.at_work[index] = lambda: (case, since)

    def follow(self, index: int, now: Callable[[], tuple[str, float]]) -> None:
        """A call has begun, of which ``now`` tells the case that it is at and since when."""
        self.at_work[index] = now

    def now(self) -> list[tuple[str, float]]:
        """The cases that are measured, and since when."""
        return [now() for now in list(self.at_work.values())]

    def ended(self, index: int, cost: float, blocks: int = 0) -> None:
        """A call has given its result, of so many blocks."""
        self.at_work.pop(index, None)
        self.done += cost
        self.blocks += blocks

    def spared(self, cost: float) -> None:
        """So much was measured before, and takes no time now."""
        self.foreseen -= cost

    def foresee(self, cost: float, before: int, last: int) -> None:
        """A case, of which a block costs so much, is foreseen to take ``last`` blocks in all.

        ``before`` is what was foreseen of it, 0 until its first look.
        """
        if not before:
            self.unseen -= cost * FIRST_LOOK
            self.first += cost * FIRST_LOOK
        self.foreseen += cost * (last - before)

    @property
    def rate(self) -> float:
        """Blocks a second so far."""
        return self.blocks / max(time.monotonic() - self.started, 1e-3)

    @property
    def seconds_left(self) -> float:
        """At the speed so far, with cases unseen as those that were seen; nan before the first."""
        if not (self.done and self.first):
            return math.nan
        total = self.foreseen * (1 + self.unseen / self.first)
        return max(0.0, total / self.done - 1) * (time.monotonic() - self.started)


def blocks_until(
    estimate: Estimate, claimed: tuple[float, float], blocks: int,
    slow: float = math.inf, farther: float = 0.0,
) -> float:
    """After how many blocks in all a verdict is foreseen, if there is none after so many; 0 where
    that is not known.

    ``slow`` is how much of half an interval narrows with the root of the blocks; what is more of
    it narrows with the blocks. ``farther`` is added to the distance of the edges.

    >>> estimate = Estimate(1.0, 0.1, 0.4, 1.6)
    >>> [round(blocks_until(estimate, (0.8, 1.2), 512, slow)) for slow in (math.inf, 0)]
    [4608, 1536]
    """
    needed = 0.0
    for edge in claimed:
        value = estimate.value
        half = value - estimate.low if edge < value else estimate.high - value
        away = abs(value - edge) + farther
        if 0 < half < math.inf and away > 0:
            root, rest = min(half, slow), max(half - slow, 0.0)
            # root·x + rest·x² = away, for x the root of the share that these blocks are of all.
            x = 2 * away / (root + math.sqrt(root * root + 4 * rest * away))
            needed = max(needed, blocks / x**2)
    return needed


def end_of_look(needed: float, blocks: int, max_blocks: int = MAX_BLOCKS) -> int:
    """The end of the first look after so many blocks that sees those needed, or of the last look.

    >>> end_of_look(4608, 512), end_of_look(0, 512), end_of_look(1e12, 512)
    (6144, 768, 1048576)
    """
    ends = [stop for _, stop in looks(max_blocks) if stop > blocks]
    return next((stop for stop in ends if stop >= needed), ends[-1])
