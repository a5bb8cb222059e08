"""From files and folders to the claims that stand in them."""

from collections.abc import Iterable
from pathlib import Path

from mcverify.declare.claim import Claim
from mcverify.declare.fault import ClaimError
from mcverify.declare.imports import imported
from mcverify.declare.loading import NO_CLAIMS, Loaded, load
from mcverify.declare.origins import BUILT_IN, packages, source, themes, within


def discover(*paths: str | Path) -> list[Claim]:
    """The claims in the given files and folders, in their order; without paths, mcverify's own.

    Raises ClaimError for a file that breaks, a claim in it that breaks a rule (both with file and
    line), and for two claims of one name, since a claim's name is its results' name.
    """
    loaded = survey(*paths)
    if loaded.faults:
        raise ClaimError(loaded.faults[0])
    return list(loaded.claims)


def survey(*paths: str | Path) -> Loaded:
    """As discover, but what is broken is told beside the claims that are not."""
    claims: dict[str, Claim] = {}
    faults: list[str] = []
    named = {Path(path).resolve() for path in paths}
    for file in _files(paths or (BUILT_IN,)):
        loaded = load(file)
        # A file beside the claims of a folder may be there for them.
        faults += [fault for fault in loaded.faults if file in named or NO_CLAIMS not in fault]
        for claim in loaded.claims:
            other = claims.setdefault(claim.name, claim)
            if other is not claim:
                faults.append(f"{file.name}: two claims are named {claim.name}, the other in "
                              f"{source(other)}; rename one")
    if not (claims or faults):
        faults.append(f"{', '.join(map(str, paths))}: {NO_CLAIMS}")
    return Loaded(tuple(claims.values()), tuple(faults))


def _files(paths: Iterable[str | Path]) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [folder for folder in themes().values() if folder.parent == path.resolve()]
            files += sorted(file for folder in (path, *inside) for file in folder.glob("*.py")
                            if file.name != "__init__.py")
        elif path.is_file() and path.suffix == ".py":
            files.append(path)
        else:
            raise ClaimError(f"{path}: no such Python file or folder; name a .py file with claims")
    return list(dict.fromkeys(file.resolve() for file in files))


def files_behind(claim: Claim) -> list[Path]:
    """The files that a claim may depend on: all Python files beside its own, and those that these
    import, wherever they are, but for the standard library's and those of installed packages."""
    file = source(claim)
    offered = any(within(file, home) for _, home in packages().values())
    others = () if offered else imported(file, file.stat().st_mtime_ns)
    return sorted({*file.parent.glob("*.py"), *others})
