"""From a name to a file with a claim, or with a law and a claim on it, that runs as it is."""

import importlib.util
import keyword
import sys
from pathlib import Path

from mcverify.declare.discover import survey
from mcverify.declare.fault import ClaimError
from mcverify.declare.rules import MAX_NAME, RESERVED

CLAIM = '''\
"""What is claimed here."""

from mcverify import claim, grid, laws, relative
from mcverify.attention import scores
from mcverify.statistic import variance


@claim(
    variance,  # or mean, std, kurtosis, median, proportion … of what the body returns
    equals=lambda d_k: d_k,  # or at_least, at_most, between: a number, or a function of settings
    within=relative(0.02),
    over=grid(law=[laws.normal, laws.uniform], d_k=[8, 64]),
    controls=grid(law=laws.shifted(laws.normal, 0.2)),  # near misses, which must be REFUTED
)
def {name}(q, k):
    """Var(q·k) = d_k when coordinates are independent with mean 0 and variance 1."""
    return scores(q, k)  # the first axis is the blocks
'''

LAW = '''\
"""A law, and what is claimed of scores under it."""

import math
from dataclasses import dataclass

from mcverify import claim, grid, laws, relative, theory
from mcverify.attention import scores
from mcverify.laws import Moments
from mcverify.statistic import variance


@dataclass(frozen=True)
class {law}:
    """Normal coordinates, any two of a vector with correlation ``rho``."""

    rho: float
    coupled: bool = False  # whether a token's own q and k depend on each other
    finite_moments: float = math.inf  # the order below which moments of a coordinate exist

    def __str__(self):
        # It must tell all parameters: the random numbers descend from it.
        return f"{word}-{{self.rho:.12g}}"

    def draw(self, rng, blocks, tokens, d_k):
        """(q, k), each (blocks, tokens, d_k), drawn from rng alone."""
        own = rng.standard_normal((2, blocks, tokens, d_k))
        common = rng.standard_normal((2, blocks, tokens, 1))
        q, k = math.sqrt(1 - self.rho) * own + math.sqrt(self.rho) * common
        return q, k

    def moments(self, d_k):
        """Means and covariances of a token's q and k; nan for what is not known."""
        unit = laws.normal.moments(d_k)
        cov = (1 - self.rho) * unit.cov_q + self.rho
        return Moments(mean_q=unit.mean_q, mean_k=unit.mean_k, cov_q=cov, cov_k=cov,
                       cross=unit.cross)


@claim(
    variance,
    equals=theory.dot_variance,  # follows from the declared moments
    within=relative(0.05),
    over=grid(law=[{law}(0.0), {law}(0.3)], d_k=[8, 32]),
    controls=grid(law={law}(0.15)),  # near misses, which must be REFUTED
)
def {name}(q, k):
    """Var(q·k) is the trace of the product of the covariances of q and k."""
    return scores(q, k)
'''

USED = {"Moments", "claim", "dataclass", "grid", "k", "laws", "math", "q", "relative", "scores",
        "theory", "variance"}  # by the files above


def new(name: str, folder: str | Path = ".", law: bool = False) -> Path:
    """Write NAME.py, with a claim of this name, or a law and a claim on it, into the folder.

    Raises ClaimError, with value, rule and repair, for a name that a claim or its file cannot
    have, for a folder that is not there, and for a file that is.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ClaimError(f"{folder}: is no folder; make it, or choose another")
    file = folder / f"{name}.py"
    _check(name)
    kind = class_name(name)
    text = LAW.format(name=f"variance_under_{name}", law=kind, word=name) if law else (
        CLAIM.format(name=name))
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise ClaimError(f"{file}: is there already; choose another name, or remove it") from None
    return file


def advice(file: Path, law: bool = False) -> str:
    """What to do with the file that ``new`` has written.

    >>> print(advice(Path("my_claim.py")))
    wrote my_claim.py, which runs as it is
      edit   the sentence (the docstring), the body, the prediction, the grid and the controls
      check  mcverify check-claim my_claim.py
      run    mcverify run my_claim.py
    """
    edit = ("the law (its name, parameters, draw and moments), then the claim on it" if law else
            "the sentence (the docstring), the body, the prediction, the grid and the controls")
    return "\n".join([
        f"wrote {file}, which runs as it is",
        f"  edit   {edit}",
        f"  check  mcverify check-claim {file}",
        f"  run    mcverify run {file}",
    ])


def class_name(name: str) -> str:
    """The name of a law's class.

    >>> class_name("my_law")
    'MyLaw'
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or "Law"


def _check(name: str) -> None:
    def require(condition: bool, message: str) -> None:
        if not condition:
            raise ClaimError(f"{name[:40]!r}: {message}")

    require(name.isidentifier() and not keyword.iskeyword(name) and name.strip("_") != "",
            "must be a Python name; use letters, digits and _, e.g. my_claim")
    require(len(name.encode()) <= MAX_NAME, f"has {len(name)} letters, and its results' file is "
            f"named after it; use at most {MAX_NAME}")
    require(name not in RESERVED, "is the name of a table of results; choose another")
    require(all(name != claim.name for claim in survey().claims),
            "is a claim of mcverify's own, and results are kept by name; choose another")
    require(name not in USED and class_name(name) not in USED,
            "is a name that the file itself uses; choose another")
    require(name not in sys.stdlib_module_names and not _importable(name),
            "is the name of a module, which the file would hide; choose another")


def _importable(name: str) -> bool:
    try:
        module = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    # A plain folder of this name can be imported, too, but holds nothing to hide.
    return module is not None and module.origin is not None
