"""What a run asks of who keeps the chunks that it has measured."""

from collections.abc import Iterable
from typing import Protocol

from mcverify.declare.claim import Case
from mcverify.judge.measure import Outcome


class Memory(Protocol):
    """Keeps what was measured for who interrupts a run, and goes on with it later."""

    def recall(self, case: Case, first: int, blocks: int) -> tuple[bytes, Outcome] | None:
        """The digest of a chunk's draws, and what they gave for a case; None if it is not known."""

    def note(self, digest: bytes, first: int, blocks: int,
             outcomes: Iterable[tuple[Case, Outcome]], seconds: float) -> None:
        """Take in what a chunk gave, which took so long."""

    def save_in_time(self) -> None:
        """Called when the cases that a chunk has decided are known."""
