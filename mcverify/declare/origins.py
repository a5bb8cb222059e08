"""Whose a claim is: the file that it stands in, and the package that offers it."""

import importlib.util
import inspect
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path

from mcverify.declare.claim import Claim

BUILT_IN = Path(__file__).parents[1] / "claims"
ENTRY_POINTS = "mcverify.claims"  # by which an installed package offers claims


@lru_cache
def packages() -> dict[str, tuple[str, Path]]:
    """By the name of its origin, the importable module and the file or folder of claims.

    Those are mcverify's own, and those that installed packages offer by an entry point in the group
    ``mcverify.claims``. One that cannot be offered is left out.
    """
    offered = {"mcverify": ("mcverify.claims", BUILT_IN.resolve())}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            spec = importlib.util.find_spec(point.value)
        except ImportError:
            continue
        if spec and spec.origin:
            file = Path(spec.origin).resolve()
            offered[point.name] = (point.value, file.parent if file.stem == "__init__" else file)
    return offered


def source(claim: Claim) -> Path:
    """The file that a claim's body stands in."""
    return Path(inspect.unwrap(claim.body).__code__.co_filename).resolve()


def origin(claim: Claim) -> str:
    """The package that offers a claim, or the file that it stands in."""
    file = source(claim)
    return next((name for name, (_, home) in packages().items() if within(file, home)), str(file))


def themes() -> dict[str, Path]:
    """By their names the folders of packages that hold a theme of several files."""
    return {folder.name: folder for _, home in packages().values()
            for folder in sorted(home.glob("*/")) if (folder / "__init__.py").is_file()}


def within(file: Path, home: Path) -> bool:
    """Whether a file is one that a package offers, or in the folder that it offers."""
    return home in (file, *file.parents)
