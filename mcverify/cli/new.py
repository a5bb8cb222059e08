"""From a name to a file with a claim, or with a law and a claim on it, that runs as it is."""

import importlib.util
import keyword
import sys
from pathlib import Path
from string import Template

from mcverify.declare.discover import survey
from mcverify.declare.fault import ClaimError
from mcverify.declare.names import MAX_NAME, RESERVED

USED = {"Moments", "claim", "dataclass", "grid", "k", "laws", "math", "q", "relative", "scores",
        "theory", "variance"}  # by the files that are written


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
    template = Path(__file__).with_name(f"new_{'law' if law else 'claim'}.txt")
    text = Template(template.read_text(encoding="utf-8")).substitute(
        name=name, law=class_name(name))
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
