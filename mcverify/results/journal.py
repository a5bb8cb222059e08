"""From findings as they come to a file from which an interrupted run goes on."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from mcverify.declare.claim import Case
from mcverify.declare.discover import files_behind
from mcverify.declare.imports import INSTALLED, PACKAGE
from mcverify.declare.parts import digest
from mcverify.judge.finding import Finding
from mcverify.results.chunks import Chunks
from mcverify.verdict import Terms

CHUNKS = ".chunks"


class Journal:
    """One line a finding, written when it is there; a line cut short by a kill is left out.

    A finding is taken up again only for the same case, terms and installed packages, and
    only while no Python file of mcverify has changed, nor one that the claim's file imports from.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / ".journal"

    def chunks(self, terms: Terms) -> Chunks:
        """Beside the findings, what chunks gave for cases that have none yet."""
        return Chunks(self.file.with_name(CHUNKS), lambda case: hashlib.blake2b(
            _key(case, terms).encode(), digest_size=16).digest())

    def keep(
        self, findings: Iterable[Finding], chunks: Chunks | None = None
    ) -> Iterator[Finding]:
        """Pass the findings on, each after it has been written; of its chunks none is needed."""
        with self.file.open("a", encoding="utf-8") as stream:
            for finding in findings:
                entry = {"key": _key(finding.case, finding.terms), **finding.row()}
                stream.write(json.dumps(entry) + "\n")
                stream.flush()
                if chunks:
                    chunks.drop(finding.case)
                yield finding

    def finished(self, cases: Iterable[Case], terms: Terms) -> list[Finding]:
        """The findings of those cases that an interrupted run has left."""
        known = {_key(case, terms): case for case in cases}
        findings: dict[Case, Finding] = {}
        for line in self._whole_lines():
            with suppress(ValueError, KeyError, TypeError):  # as of a line that something damaged
                entry = json.loads(line)
                if case := known.get(entry["key"]):
                    findings[case] = Finding.of_row(case, entry)
        return list(findings.values())

    def _whole_lines(self) -> list[str]:
        """The lines, without what a kill cut short, which is removed from the file as well."""
        if not self.file.exists():
            return []
        text = self.file.read_bytes()
        end = text.rfind(b"\n") + 1
        with self.file.open("r+b") as stream:
            stream.truncate(end)
        return text[:end].decode(errors="replace").splitlines()

    def forget(self) -> None:
        """Remove the files: the run is complete, or is not gone on with."""
        for name in (self.file.name, CHUNKS, f"{CHUNKS}-journal"):
            self.file.with_name(name).unlink(missing_ok=True)


@lru_cache(maxsize=4096)
def _key(case: Case, terms: Terms) -> str:
    code = _digest(*files_behind(case.claim)) + _digest(*_own_files())
    return f"{case}|{terms}|{_versions()}|{code}"


@lru_cache(maxsize=1024)
def _digest(*files: Path) -> str:
    return digest([text for file in files for text in (file.name, file.read_bytes().hex())])


@cache
def _own_files() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def _versions() -> str:
    """The versions of what is installed, on which the numbers may depend."""
    names = {info.name for home in INSTALLED for info in home.glob("*.dist-info")}
    return digest(sorted(names))
