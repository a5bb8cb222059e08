"""The cases of a world that see the same chunks at a look, and the chunks of a call."""

from dataclasses import dataclass

from mcverify.judge.measure import ChunkAt
from mcverify.judge.trial import Trial
from mcverify.judge.world import World

CALL = 0.03  # seconds that a call is to take, beside which what it costs to make it is little
A_NUMBER = 1e-8  # seconds that a number drawn takes with all that is made of it, at first guess


@dataclass
class Group:
    """The trials of a world at a look, and how much of the look is under way.

    Attributes
    ----------
    awaited : calls that have been made and not settled.
    left : blocks that no call has been made for.
    """

    world: World
    trials: list[Trial]
    look: int
    awaited: int = 0
    left: int = 0

    @property
    def blocks(self) -> tuple[int, int]:
        """Where its look begins and ends."""
        return self.trials[0].terms.looks[self.look]

    @property
    def held(self) -> int:
        """Numbers of chunks that have come before others that they follow."""
        return sum(trial.held for trial in self.trials)

    @property
    def cost(self) -> int:
        """Of all its blocks at this look, in a unit of its own."""
        start, stop = self.blocks
        return (stop - start) * sum(trial.cost for trial in self.trials)

    def task(self, pace: float | None, alone: bool) -> "Task":
        """The next chunks, for one call.

        ``pace`` is the seconds that a block takes, if it is known. If the group is ``alone``, it
        leaves as many chunks to other processes. Trials that a chunk has broken see no more.
        """
        start, stop = self.blocks
        size = self.world.chunk(stop - start)
        pace = pace or A_NUMBER * self.world.cost * (1 + len(self.trials) / 2)
        left = self.left // size
        count = max(1, min(left // 2 if alone else left, round(CALL / (pace * size))))
        first = stop - self.left
        self.awaited, self.left = self.awaited + 1, self.left - count * size
        sound = [trial for trial in self.trials if not trial.fault]
        return Task(self, tuple(sound or self.trials),
                    tuple((first + number * size, size) for number in range(count)))


@dataclass(frozen=True)
class Task:
    """What one call measures: chunks of a group's world, for the trials that look at them."""

    group: Group
    trials: tuple[Trial, ...]
    chunks: tuple[ChunkAt, ...]

    @property
    def blocks(self) -> int:
        """How many blocks its chunks have."""
        return sum(blocks for _, blocks in self.chunks)

    @property
    def cost(self) -> int:
        """In the unit of a group's."""
        return self.blocks * sum(trial.cost for trial in self.trials)
