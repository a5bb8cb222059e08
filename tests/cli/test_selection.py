"""Which claims the words of a command mean: patterns, last verdicts, near names, completion."""

import re
from pathlib import Path

import pytest

from mcverify import discover
from mcverify.cli.main import main
from mcverify.cli.options import claims_and_statements, statement_ids
from mcverify.cli.selection import select
from mcverify.declare import discover as discover_module
from mcverify.declare.fault import UsageError
from mcverify.results.ledger import statements

real = discover_module.load
HEAD = '''
from mcverify import Verdict, absolute, claim, grid, laws
from mcverify.statistic import mean
'''
CLAIM = '''
@claim(mean, equals=VALUE, within=absolute(0.5), over=grid(law=laws.normal, d_k=2), MORE)
def NAME(q):
    """The mean is what it is said to be."""
    BODY
'''
CLAIMS = {
    "right": ("0", "", "return q"),
    "wrong_value": ("3", "", "return q"),
    "wrong_on_purpose": ("3", "expect=Verdict.REFUTED", "return q"),
    "broken": ("0", "", "raise KeyError('gone')"),
    "too_tame": ("0", "controls=grid(law=laws.uniform)", "return q"),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A folder with claims of every fate in mine.py, and their results."""
    folder = tmp_path_factory.mktemp("judged")
    (folder / "mine.py").write_text(HEAD + "".join(
        CLAIM.replace("VALUE", value).replace("MORE", more).replace("NAME", name)
        .replace("BODY", body) for name, (value, more, body) in CLAIMS.items()))
    assert main(["run", str(folder / "mine.py"), "--jobs", "1", "--out", str(folder / "results")
                 ]) == 1
    return folder


@pytest.fixture
def here(judged, monkeypatch):
    monkeypatch.chdir(judged)


def listed(capsys, *arguments):
    capsys.readouterr()
    assert main(["list", *arguments]) == 0
    return [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]


def names(*words):
    return [claim.name for claim in select(words)[0]]


def test_a_pattern_names_all_that_match_it():
    every = [claim.name for claim in discover()]
    assert names("dot_*") == [name for name in every if name.startswith("dot_")]
    assert names("hand_slop[a-e]", "hand_*t") == ["hand_slope"] + [
        name for name in every if name.startswith("hand_") and name.endswith("t")]
    assert names("C?") == [claim.name for claim in discover()
                           if any(re.fullmatch("C.", word) for word in claim.decides.split())]
    with pytest.raises(UsageError, match=r"z\*: no claim or statement has this name"):
        select(["z*"])


def test_claims_that_are_named_are_found_without_looking_at_the_others(monkeypatch):
    looked_at = []
    monkeypatch.setattr(discover_module, "load", lambda file: looked_at.append(file.name) or
                        real(file))
    assert names("hand_slope", "dot_variance") == ["hand_slope", "dot_variance"]
    assert sorted(looked_at) == ["hand.py", "variance.py"]
    assert names("hand_slope", "A1")[0] == "hand_slope"  # a statement's claims may stand anywhere
    assert len(looked_at) > 20


def test_a_pattern_chooses_among_the_claims_of_a_file(here, capsys):
    assert names("mine.py::wrong_*") == ["wrong_value", "wrong_on_purpose"]
    assert main(["run", "mine.py::wrong_on*", "--jobs", "1"]) == 0
    assert "claims 1, " in capsys.readouterr().out


@pytest.mark.parametrize(("options", "expected"), [
    (["--verdict", "REFUTED"], ["wrong_value", "wrong_on_purpose"]),
    (["--verdict", "confirmed"], ["right", "too_tame"]),
    (["--verdict", "ERROR"], ["broken"]),
    (["--verdict", "INCONCLUSIVE"], []),
    (["--failed"], ["wrong_value", "broken", "too_tame"]),
    (["--failed", "--verdict", "REFUTED"], ["wrong_value"]),
])
def test_claims_are_chosen_by_how_they_were_last_judged(here, capsys, options, expected):
    assert listed(capsys, "mine.py", *options) == expected


def test_run_failed_judges_just_those_and_keeps_the_rows_of_others(here, capsys):
    before = Path("results/verdicts.csv").read_bytes()
    assert main(["run", "mine.py", "--failed", "--jobs", "1"]) == 1
    assert "claims 3, cases 3, not as declared 2" in capsys.readouterr().out
    assert Path("results/verdicts.csv").read_bytes() == before
    assert main(["run", "mine.py", "--verdict", "INCONCLUSIVE"]) == 0
    assert capsys.readouterr().out == "nothing to run: no claim was judged INCONCLUSIVE\n"
    assert main(["run", "mine.py::right", "--failed"]) == 0
    assert capsys.readouterr().out == "nothing to run: every claim was judged as declared\n"


@pytest.mark.parametrize("command", ["run", "list"])
def test_there_must_be_verdicts_to_choose_by(tmp_path, capsys, command):
    assert main([command, "--failed", "--out", str(tmp_path / "none")]) == 2
    assert "holds no verdicts to choose by; make them with `mcverify run`" in (
        capsys.readouterr().err)
    assert main([command, "--verdict", "MAYBE"]) == 2
    assert "'MAYBE' must be one of CONFIRMED, REFUTED, INCONCLUSIVE, ERROR" in (
        capsys.readouterr().err)


@pytest.mark.parametrize(("word", "near"), [
    ("DOT_VARIANCE", "did you mean dot_variance?"), ("a7", "did you mean A7?"),
    ("dot_varianc", "did you mean dot_variance or "), ("Hand_Slop", "did you mean hand_slope?"),
    ("xyzzy", "see `mcverify list`."), ("nonsense", "see `mcverify list`."),
    ("quantum_attention", "see `mcverify list`."),
])
def test_a_near_name_is_suggested_and_none_for_nonsense(word, near):
    with pytest.raises(UsageError) as caught:
        select([word])
    assert f"{word}: no claim or statement has this name; {near}" in str(caught.value)


# --- completion -------------------------------------------------------------------------------


def test_a_shell_completes_every_claim_and_statement():
    claims = sorted(claim.name for claim in discover())
    ids = statements()["id"].tolist()
    assert statement_ids() == ids
    assert sorted(claims_and_statements()) == sorted(claims + ids)
    assert claims_and_statements("hand_slo") == ["hand_slope"]


@pytest.mark.parametrize(("words", "expected"), [
    (["run", "dot_vari"], ["dot_variance"]), (["show", "dot_vari"], ["dot_variance"]),
    (["ledger", "B3"], [name for name in statement_ids() if name.startswith("B3")]),
    (["sel"], ["selfcheck"]), (["run", "--err"], ["--error-rate"]),
])
def test_a_shell_is_told_by_the_command_itself(words, expected, monkeypatch, capsys):
    for name, value in (("_MCVERIFY_COMPLETE", "complete_bash"), ("COMP_CWORD", str(len(words))),
                        ("COMP_WORDS", " ".join(["mcverify", *words]))):
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    assert capsys.readouterr().out.split() == expected
