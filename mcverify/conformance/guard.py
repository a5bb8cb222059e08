"""From a calculation to what it did besides: drew random numbers, or read a file.

Files are seen by an audit hook: whatever opens one through Python tells it, also NumPy and pandas.
Draws are seen in two ways. Every NumPy generator takes a lock when it is made, and every
``random.Random`` seeds itself, by whatever route it is reached, so those two are replaced; and
generators that are there already, the global ones among them, are compared before and after.

Not seen: numbers written into the file by hand, or drawn or computed while it was loaded; what a
library in C reads or draws by itself, or ``os.urandom``; what another process does once started.
"""

import gc
import os
import pickle
import random
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import bit_generator

LOCKS = [name for name in ("Lock", "RLock") if hasattr(bit_generator, name)]  # by NumPy's version
PACKAGE = Path(__file__).parent.parent
LAWS = str(PACKAGE / "laws")
CODE = (".py", ".pyc", ".so", ".pyd", ".dll")

Read = tuple[str, str]  # what was done, and to what: "results", "csv", "file"


class Drawn(Exception):
    """Raised where a generator is made that must not be."""


_reads: ContextVar[list[Read] | None] = ContextVar("_reads", default=None)


@contextmanager
def reading() -> Iterator[list[Read]]:
    """Inside it, the list it yields fills with the files that are opened and processes started.

    Python's own files, those of installed packages and code are left out.
    """
    _install()
    read: list[Read] = []
    token = _reads.set(read)
    try:
        yield read
    finally:
        _reads.reset(token)


@cache
def _install() -> None:
    sys.addaudithook(_hook)  # which no one can remove; outside of ``reading`` it does nothing


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("open", "subprocess.Popen", "os.system", "socket.connect"):
        return
    read = _reads.get()
    if read is None:
        return
    if event == "open":
        kind = _kind(arguments[0])
        entry = (f"opens {arguments[0]}", kind)
    else:
        entry = (f"goes to another process or machine ({event})", "file")
    if entry[1] and entry not in read:
        read.append(entry)


def _kind(path: Any) -> str:
    if not isinstance(path, str | bytes | os.PathLike):
        return ""  # a descriptor, whose file was opened before
    file = Path(os.fsdecode(path)).absolute()
    if file.suffix in CODE or any(map(file.is_relative_to, _ordinary())):
        return ""
    if any(folder.name == "results" or (folder / "verdicts.csv").is_file()
           for folder in file.parents):
        return "results"
    return "csv" if file.suffix.lower() == ".csv" else "file"


@cache
def _ordinary() -> tuple[Path, ...]:
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return (*map(Path, [*places, "/dev", "/proc", "/sys"]), PACKAGE)


def generators() -> list[Any]:
    """All generators of random numbers that there are, NumPy's and Python's."""
    return [one for one in gc.get_objects()
            if isinstance(one, np.random.BitGenerator | random.Random)
            and not isinstance(one, random.SystemRandom)]


@contextmanager
def drawing(known: list[Any]) -> Iterator[list[str]]:
    """Inside it, making a generator raises Drawn; afterwards the list it yields says what drew.

    ``known`` are the generators whose states are compared, and put back. What the import of
    another module makes does not count, nor what a law of mcverify's own makes, whose weights are
    drawn once and for all.
    """
    drew: list[str] = []
    before = [(one, _state(one)) for one in known]
    with ExitStack() as stack:
        for owner, name in [(random.Random, "seed"), *((bit_generator, name) for name in LOCKS)]:
            real = getattr(owner, name)
            stack.callback(setattr, owner, name, real)
            setattr(owner, name, _refusal(real, drew))
        yield drew
    for one, state in before:
        if _state(one) != state:
            drew.append("draws from a generator that was made before")
            _restore(one, state)


def _refusal(real: Any, drew: list[str]) -> Any:
    def refuse(*arguments: Any, **named: Any) -> Any:
        if _excused():
            return real(*arguments, **named)
        drew.append("makes a generator of random numbers")
        raise Drawn("no random numbers here")

    return refuse


def _excused() -> bool:
    frame = sys._getframe()
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if file.startswith(("<frozen importlib", LAWS)):
            return True
        frame = frame.f_back
    return False


def _state(one: Any) -> bytes:
    return pickle.dumps(one.getstate() if isinstance(one, random.Random) else one.state)


def _restore(one: Any, state: bytes) -> None:
    if isinstance(one, random.Random):
        one.setstate(pickle.loads(state))
    else:
        one.state = pickle.loads(state)
