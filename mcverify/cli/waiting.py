"""Tell who waits for a run how far it is: by a bar on a terminal, by a line a minute in a pipe."""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column
from rich.text import Text

from mcverify.cli.terminal import console, show
from mcverify.declare.text import printable
from mcverify.judge.finding import Finding
from mcverify.judge.watch import Watch

PATIENCE = 10.0  # seconds without a finished case after which those at work are named
MINUTE = 60.0  # between two lines in a pipe
TICK = 0.5
NAMED = 3  # of the cases at work, at most


class Waiting:
    """How far a run of so many cases is, some of which had been finished before."""

    def __init__(self, cases: int, finished: int) -> None:
        self.cases, self.finished, self.watch = cases, finished, Watch()
        self.last = self.watch.started  # when a case has finished

    def follow(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Pass the findings on, and tell of them on standard error until all are there."""
        with self._bar() if console(stderr=True).is_terminal else self._lines():
            for finding in findings:
                self.finished, self.last = self.finished + 1, time.monotonic()
                yield finding

    @property
    def stalled(self) -> bool:
        """Whether no case has finished for a while."""
        return time.monotonic() - self.last >= PATIENCE

    def __str__(self) -> str:
        """The rate, the time left if it is foreseen, and, if nothing has finished lately, what is
        at work."""
        parts, rate, left = [], self.watch.rate, self.watch.seconds_left
        if self.cases and rate:
            parts.append(f"{rate:,.0f} blocks a second" if rate >= 10 else
                         f"{rate:.2g} blocks a second")
        if self.cases and left >= 1:
            parts.append(f"about {left:.0f} s left" if left < 100 else
                         f"about {left / 60:.0f} min left")
        names = [case for case, _ in self.watch.now()]
        if self.stalled and names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            parts.append(f"at {', '.join(names[:NAMED])}{more}")
        return printable("; ".join(parts))

    @contextmanager
    def _bar(self) -> Iterator[None]:
        columns = (TextColumn("cases"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                   _Now(self))
        with Progress(*columns, console=console(stderr=True), transient=True) as progress:
            progress.add_task("", total=self.cases)
            yield

    @contextmanager
    def _lines(self) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._say, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _say(self, ended: threading.Event) -> None:
        """Say a line every minute, and at first sooner when nothing has moved for a while."""
        said, told_of, pause = self.watch.started, (0.0, 0.0), PATIENCE
        while not ended.wait(TICK):
            now = time.monotonic()
            oldest = min((since for _, since in self.watch.now()), default=now)
            here = self.last, oldest if now - oldest >= PATIENCE else 0.0
            stalled = self.stalled and here != told_of and now - said >= pause
            if now - said >= MINUTE or stalled:
                count = f"{self.finished} of {self.cases} cases" if self.cases else ""
                if line := "; ".join(filter(None, [count, str(self)])):
                    show(line, stderr=True)
                said, told_of, pause = now, here, min(2 * pause, MINUTE)


@contextmanager
def patient() -> Iterator[Watch]:
    """Inside it what the watch is at is told in lines, as that of a run in a pipe."""
    waiting = Waiting(0, 0)
    with waiting._lines():
        yield waiting.watch


class _Now(ProgressColumn):
    """What the bar says of the moment, cut off at the end of the line."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(Column(ratio=1, no_wrap=True))
        self.waiting = waiting

    def render(self, task: Task) -> Text:
        """Called for every refresh."""
        task.completed = self.waiting.finished
        return Text(str(self.waiting), overflow="ellipsis", no_wrap=True)
