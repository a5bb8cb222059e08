"""From the name of an attention function on the command line to its report and exit status."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from mcverify.declare.fault import UsageError
from mcverify.probing.probe import probe


def probe_command(target: str, dtype: str | None = None, **options: Any) -> tuple[str, int]:
    """The report on "module:function" or "file.py:function", and 0 or 1.

    1 where a declared scale is not what was measured, or nothing could be. ``dtype`` is a name,
    such as "float32" or "torch.bfloat16"; the other options are those of ``probe``. Raises
    UsageError for a target that is not there and for what ``probe`` refuses.
    """
    attend = _function(target)
    try:
        found = probe(attend, dtype=_type(dtype), **options)
    except ValueError as error:
        raise UsageError(f"{target}: {error}") from None
    return str(found), int(bool(found.reason) or found.agrees is False)


def _function(target: str) -> Any:
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise UsageError(f"{target!r}: must name a function as module:function or file.py:function")
    try:
        function = getattr(_module(place), name)
    except (ImportError, OSError) as error:
        raise UsageError(f"{target}: {error}; run it where {place} can be imported") from None
    except AttributeError:
        raise UsageError(f"{target}: {place} has no {name!r}; name one of its functions") from None
    if not callable(function):
        raise UsageError(f"{target}: must be a function of q, k, v, not {type(function).__name__}")
    return function


def _module(place: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        if spec is None or spec.loader is None:
            raise ImportError(f"{place} is no Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.pop(0)


def _type(name: str | None) -> Any:
    if name is None or not name.startswith("torch."):
        return name
    return getattr(importlib.import_module("torch"), name.removeprefix("torch."))
