"""From a results folder to one self-contained HTML page; needs jinja2, by mcverify[report]."""

from collections.abc import Callable
from pathlib import Path

from mcverify.declare.fault import UsageError
from mcverify.report.contents import Pictures, contents
from mcverify.results.folder import Results

__all__ = ["report_on"]


def report_on(results: Results, draw: Callable[[Results], Pictures]) -> str:
    """The page: the ledger, the claims that decide it, and how verdicts are made.

    Whatever stands in the results is text and never markup; only what ``draw`` gives is SVG.
    UsageError without jinja2, or if the folder holds no verdicts, or a damaged table.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ModuleNotFoundError as error:
        raise UsageError("report: jinja2 is not installed; run `pip install 'mcverify[report]'`"
                         ) from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                              lstrip_blocks=True)
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(contents(results, draw))
