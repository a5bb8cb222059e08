"""From the outcomes of chunks to a file from which an interrupted run takes them up again."""

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from mcverify.attention.chunk import Made, Scores, Vectors
from mcverify.declare.claim import Case
from mcverify.judge.measure import Measured, Outcome, numbers_in

SPAN = 10.0  # seconds of measuring that a kill may cost, besides what is under way
HELD = 2**23  # numbers, 64 MiB, that are not written yet
PAGE = 2**15  # bytes that are written together: a table of block values or more
MOST = 2**30  # bytes; what does not fit is drawn again
TABLE = """CREATE TABLE IF NOT EXISTS chunk (
    key BLOB, first INTEGER, blocks INTEGER, digest BLOB, about TEXT, shape TEXT, numbers BLOB,
    sum INTEGER, UNIQUE (key, first))"""


class Chunks:
    """What chunks gave for cases that are not decided yet, by the case's key and the first block.

    They are written every few seconds of measuring, and when the run ends otherwise than by a kill.
    So what is decided soon is never written. What is damaged, or does not fit, is drawn again.

    Parameters
    ----------
    file : an SQLite database, made when there is something to write.
    key : of a case, what its outcomes depend on besides the blocks.
    """

    def __init__(self, file: Path, key: Callable[[Case], bytes]) -> None:
        self.file, self.key = file, key
        self.fresh: dict[bytes, list[tuple[Any, ...]]] = {}  # rows that are not written yet
        self.decided: list[tuple[bytes]] = []  # keys of rows that may go
        self.left: set[bytes] = set()  # keys of what an interrupted run has left
        self.seconds = 0.0  # that it took to measure what is not written
        self.numbers = 0  # in it
        self.database: sqlite3.Connection | None = None
        self.usable = True

    @contextmanager
    def kept(self, cases: Iterable[Case]) -> Iterator[None]:
        """Inside it what an interrupted run has left of these cases is known; after it all is
        written."""
        self._take_up(cases)
        try:
            yield
        finally:
            self.save()
            self._close()

    def _take_up(self, cases: Iterable[Case]) -> None:
        if not self.file.exists():
            return
        known = {self.key(case) for case in cases}
        with suppress(sqlite3.Error):
            left = {key for key, in self._opened().execute("SELECT DISTINCT key FROM chunk")}
            self.left, self.decided = left & known, [(key,) for key in left - known]
            return
        self._close()  # damaged, and no loss but of time
        self.file.unlink()

    def recall(self, case: Case, first: int, blocks: int) -> tuple[bytes, Outcome] | None:
        """The digest of a chunk's draws, and what they gave for a case; None if it is not known."""
        if self.database is None or self.key(case) not in self.left:
            return None
        try:
            row = self.database.execute(
                "SELECT digest, about, shape, numbers, sum FROM chunk "
                "WHERE key = ? AND first = ? AND blocks = ?", (self.key(case), first, blocks)
            ).fetchone()
            return _read(*row) if row and _sum(*row[:-1]) == row[-1] else None
        except (sqlite3.Error, TypeError, ValueError):
            return None

    def note(self, digest: bytes, first: int, blocks: int,
             outcomes: Iterable[tuple[Case, Outcome]], seconds: float) -> None:
        """Hold what a chunk gave, which took so long, until it is time to write."""
        self.seconds += seconds
        for case, outcome in outcomes if self.usable else ():
            key = self.key(case)
            self.fresh.setdefault(key, []).append((key, first, blocks, digest, outcome))
            self.numbers += numbers_in(outcome)

    def drop(self, case: Case) -> None:
        """The case is decided: its chunks are not needed any more."""
        key = self.key(case)
        self.fresh.pop(key, None)
        if self.database is not None:
            self.decided.append((key,))

    def save_in_time(self) -> None:
        """Write if a kill would cost too much else, or too much is held."""
        if self.seconds >= SPAN or self.numbers >= HELD:
            self.save()

    def save(self) -> None:
        """Write what is not written yet."""
        self.seconds, self.numbers = 0.0, 0
        rows = [(*row[:-1], *_written(row[3], row[4])) for each in self.fresh.values()
                for row in each]
        if rows or self.decided:
            try:
                with self._opened() as database:
                    database.executemany("DELETE FROM chunk WHERE key = ?", self.decided)
                    database.executemany(
                        "INSERT OR REPLACE INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            except sqlite3.Error:  # full, or damaged
                self.usable = False
        self.fresh.clear()
        self.decided.clear()

    def _close(self) -> None:
        if self.database is not None:
            self.database.close()
            self.database = None

    def _opened(self) -> sqlite3.Connection:
        if self.database is None:
            # The folder is this run's alone, and some file systems of clusters know no locks.
            self.database = sqlite3.connect(f"{self.file.resolve().as_uri()}?nolock=1", uri=True)
            self.database.execute("PRAGMA synchronous = OFF")  # a kill harms nothing
            self.database.execute(f"PRAGMA page_size = {PAGE}")
            self.database.execute(f"PRAGMA max_page_count = {MOST // PAGE}")
            self.database.execute(TABLE)
        return self.database


def _written(digest: bytes, outcome: Outcome) -> tuple[str, str, bytes, int]:
    """An outcome as cells: what was made or what went wrong, the shape, numbers, a check sum."""
    if isinstance(outcome, str):
        cells = json.dumps({"error": outcome}), "", b""
    else:
        table = np.ascontiguousarray(outcome.table, np.float64)
        cells = (json.dumps({"made": outcome.made}, default=float), json.dumps(table.shape),
                 table.tobytes())
    return *cells, _sum(digest, *cells)


def _read(digest: bytes, about: str, shape: str, numbers: bytes, _: int
          ) -> tuple[bytes, Outcome]:
    content = json.loads(about)
    if "error" in content:
        return digest, str(content["error"])
    table = np.frombuffer(numbers).reshape(json.loads(shape)).copy()
    return digest, Measured(table, _made(content["made"]))


def _made(parts: list[Any] | None) -> Made | None:
    """What the body returned, of its names and numbers.

    >>> _made(["all", 0.5, 0]), _made([["q"], ["k"]])
    (Scores(pairs='all', scale=0.5, width=0), (Vectors(which='q'), Vectors(which='k')))
    """
    if parts is None:
        return None
    if isinstance(parts[0], list):
        return tuple(_made(part) for part in parts)  # type: ignore[misc]
    return Scores(*parts) if len(parts) > 1 else Vectors(*parts)


def _sum(digest: bytes, about: str, shape: str, numbers: bytes) -> int:
    return zlib.crc32(numbers, zlib.crc32(digest + f"{about}{shape}".encode()))
