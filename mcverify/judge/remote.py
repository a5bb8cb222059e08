"""What a run takes along to other machines, and what stands ready for it there."""

import hashlib
import importlib.metadata
import multiprocessing
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import connection
from pathlib import Path
from typing import Any

import cloudpickle

from mcverify.declare.claim import Claim
from mcverify.declare.discover import files_behind
from mcverify.declare.imports import PACKAGE
from mcverify.declare.origins import origin, packages
from mcverify.judge import reference
from mcverify.judge.worker import TICK, Worker

SOURCE = "the source of "
ALWAYS = ["Python", "NumPy", "SciPy", f"{SOURCE}mcverify"]  # numbers depend on them


def versions(names: Iterable[str]) -> dict[str, str]:
    """Of Python, of distributions, and of packages of claims ``the source of NAME``, as a digest.

    The source, since its version stays the same while somebody works on it.

    >>> versions(["nothing of this name"])
    {'nothing of this name': 'missing'}
    """
    return {name: _version(name) for name in names}


def _version(name: str) -> str:
    if name == "Python":
        return ".".join(platform.python_version_tuple()[:2])
    if name.startswith(SOURCE):
        homes = {name: home for name, (_, home) in packages().items()}
        home = (homes | {"mcverify": PACKAGE}).get(name.removeprefix(SOURCE))
        return _digest(home) if home else "missing"
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


@cache
def _digest(home: Path) -> str:
    """Of a file, or of all files of a folder but those that Python makes."""
    digest = hashlib.sha256()
    for file in sorted(home.rglob("*")) if home.is_dir() else [home]:
        if file.is_file() and file.suffix != ".pyc":
            digest.update(f"{file.relative_to(home.parent)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Luggage:
    """What claims need on another machine.

    Attributes
    ----------
    versions : of what must be installed there.
    homes : where packages of claims stand here, by their names.
    files : the source of claims that no package offers, and of what they import.
    paths : where Python looks here for what they import.
    """

    versions: dict[str, str]
    homes: dict[str, Path]
    files: dict[Path, bytes]
    paths: list[Path]


def luggage(claims: Iterable[Claim]) -> Luggage:
    """What these claims need."""
    claims = list(claims)
    homes = {name: home for name, (_, home) in packages().items()}
    files = {file: file.read_bytes() for claim in claims if origin(claim) not in homes
             for file in files_behind(claim)}
    paths = [path for path in map(Path.resolve, map(Path, sys.path))
             if any(file.is_relative_to(path) for file in files)]
    asked = {*(claim.needs for claim in claims if claim.needs),
             *(f"{SOURCE}{origin(claim)}" for claim in claims if origin(claim) in homes)}
    needed = versions([*ALWAYS, *sorted(asked - {*ALWAYS})])
    return Luggage(needed, homes, files, paths)


@dataclass
class Place:
    """Where the calls of a run are made on another machine, each in a process of its own.

    So what a call does to its process costs that call alone, and all else is as it is in a run on
    one machine: BLAS on one thread, the limit of a body, the global random state.
    """

    luggage: Luggage
    idle: list[Worker] = field(default_factory=list)
    all: list[Worker] = field(default_factory=list)
    unpacked: Path | None = None

    def __post_init__(self) -> None:
        here = versions(self.luggage.versions)
        self.fault = "; ".join(
            f"{name} is {here[name]} there and {version} here"
            for name, version in self.luggage.versions.items() if here[name] != version)
        if self.fault:
            return
        homes = {name: home for name, (_, home) in packages().items()}
        self.moved = [(home, homes[name]) for name, home in self.luggage.homes.items()
                      if name in homes]
        # On a disk that machines share the files are there, with data that they may read.
        if not all(file.is_file() and file.read_bytes() == text
                   for file, text in self.luggage.files.items()):
            self._unpack()
        self.paths = [str(_moved(path, self.moved)) for path in self.luggage.paths]
        # A nanny starts workers as daemons, which may have no processes; those here end with it.
        multiprocessing.current_process().daemon = False

    def _unpack(self) -> None:
        """Write the files under a folder of their own, as they stand to each other."""
        self.unpacked = Path(tempfile.mkdtemp(prefix="mcverify-"))
        self.moved.append((Path(Path.cwd().anchor), self.unpacked))
        for file, text in self.luggage.files.items():
            there = _moved(file, self.moved[-1:])
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(text)

    def make(self, lot: list[bytes], limit: float | None) -> tuple[list[tuple[str, Any]], float]:
        """Make some calls, one by one: their answers, as of Worker.answer, and the seconds."""
        begun = time.monotonic()
        return [self._make(call, limit) for call in lot], time.monotonic() - begun

    def _make(self, pickled: bytes, limit: float | None) -> tuple[str, Any]:
        if self.idle:
            worker = self.idle.pop()
        else:
            worker = Worker()
            self.all.append(worker)
        worker.begin(_made, (self.moved, self.paths, pickled))
        while not (answer := worker.answer(limit)):
            connection.wait(worker.signs, TICK if limit else None)
        self.idle.append(worker)
        return answer

    def close(self) -> None:
        """End the processes, also those at work, and remove what was unpacked."""
        for worker in self.idle:
            worker.stop()
        for worker in self.all:  # whoever waits for one that is at work learns of its death
            with suppress(AttributeError, ValueError):  # it has just been stopped
                worker.process.kill()
        if self.unpacked:
            shutil.rmtree(self.unpacked, ignore_errors=True)


def _moved(path: Path, moved: Iterable[tuple[Path, Path]]) -> Path:
    """Where a path of the client is here.

    >>> str(_moved(Path("/a/b/c.py"), [(Path("/x"), Path("/y")), (Path("/a"), Path("/z"))]))
    '/z/b/c.py'
    """
    return next((here / path.relative_to(there) for there, here in moved
                 if path.is_relative_to(there)), path)


def _made(moved: list[tuple[Path, Path]], paths: list[str], pickled: bytes) -> Any:
    """In the process: make a call whose claims stand in other places than where it was begun."""
    sys.path.extend(path for path in paths if path not in sys.path)
    reference.locate = partial(_moved, moved=moved)
    function, call = cloudpickle.loads(pickled)
    return function(*call)
