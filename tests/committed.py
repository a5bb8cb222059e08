"""The committed results, as tests read them."""

from functools import lru_cache
from pathlib import Path

from mcverify.results.folder import Results

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"


@lru_cache(maxsize=512)
def committed_rows(claim):
    """By the case's name, the rows of the claim's committed table."""
    rows = Results(RESULTS).read(claim.name)
    return dict(zip(map(str, claim.cases()), rows, strict=False))
