"""From the name of an attention function on the command line to its report and exit status."""

import importlib
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from mcverify.declare.fault import UsageError
from mcverify.probing.probe import probe


def probe_command(target: str, dtype: str | None = None, **options: Any) -> tuple[str, int]:
    """The report on "module:function" or "file.py:function", and 0 or 1.

    1 where a declared scale is not what was measured, or nothing could be. ``dtype`` is a name,
    such as "float32" or "torch.bfloat16"; the other options are those of ``probe``. Raises
    UsageError for a target that is not there, or raises, and for what ``probe`` refuses.
    """
    attend = _function(target)
    try:
        probed = probe(attend, dtype=_type(dtype), **options)
    except Exception as error:
        notes = getattr(error, "__notes__", ())  # which an error of the function itself has
        if not notes and not isinstance(error, ValueError):
            raise
        what = f"{type(error).__name__}: {error}; {notes[-1]}" if notes else str(error)
        raise UsageError(f"{target}: {what}") from None
    return str(probed), int(bool(probed.reason) or probed.agrees is False)


def _function(target: str) -> Any:
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise UsageError(f"{target!r}: must name a function as module:function or file.py:function")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module: Any = (SimpleNamespace(**runpy.run_path(place, run_name=Path(place).stem))
                       if place.endswith(".py") else importlib.import_module(place))
    except Exception as error:
        raise UsageError(f"{target}: {place} cannot be imported: {type(error).__name__}: {error}; "
                         "run it where it can") from None
    finally:
        sys.path.pop(0)
    function = getattr(module, name, None)
    if not callable(function):
        has = "has no" if function is None else "has, but not as a function,"
        raise UsageError(f"{target}: {place} {has} {name}; name a function of q, k, v")
    return function


def _type(name: str | None) -> Any:
    package, _, of = (name or "").rpartition(".")
    try:
        return getattr(importlib.import_module(package), of) if package else name and np.dtype(name)
    except (ImportError, AttributeError, TypeError):
        raise UsageError(f"--dtype {name}: must be a type of NumPy, or of a package that is there, "
                         "such as float32, torch.bfloat16 or jax.numpy.bfloat16") from None
