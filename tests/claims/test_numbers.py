"""Every number of the ledger's corrections is decided by a claim that decides its row."""

from dataclasses import replace

import pytest
from claims.prose_numbers import Number, decided, numbers, of_claim, sources, undecided

from mcverify import discover
from mcverify.results.ledger import statements

CLAIMS = discover()
ROWS = {row["id"]: row for row in statements().to_dict("records")}


@pytest.mark.parametrize("name", ROWS)
def test_every_number_of_a_correction_is_decided(name):
    """`undecided` tells which claims a number may come from; write the claim, or leave it out."""
    assert undecided(ROWS[name], CLAIMS) == []


def test_a_number_that_is_off_in_its_last_digit_is_not_decided():
    """Of numbers of three digits or more, chance decides one in twenty at most."""
    by_chance, tried = [], 0
    for name, row in ROWS.items():
        known = sources(row, CLAIMS)
        for number, *parts in numbers(row["correction"]):
            if parts or "." not in number.text or len(number.text.strip("0.")) < 3 or (
                    not decided(number, known)):
                continue
            tried += 1
            wrong = replace(number, value=number.value + 4 * number.unit)
            by_chance += [(name, number.text)] if decided(wrong, known) else []
    assert tried > 30
    assert len(by_chance) <= tried / 20, by_chance


@pytest.mark.parametrize(("prose", "expected"), [
    ("B19 of float16 (et al. 2020, section 3.2.1): .5 for 2 keys", [[".5"], ["2"]]),
    ("with n keys 2(n − 1)e^−Δ, √(2 ln n), d_k²/(d_k − 1) and 1/√d_k", []),
    ("3 + 6/64 or 10⁹ or 1e-7", [["3 + 6/64", "3", "6", "64"], ["10^9", "10", "9"], ["1e-7"]]),
    ("d_k = 64: a variance of −.5, at (8, −8)/√64",
     [["64"], [".5"], ["8"], ["8", "64"]]),
])
def test_numbers_are_told_from_names_and_formulas(prose, expected):
    assert [[number.text for number in found] for found in numbers(prose)] == expected


def test_percents_are_shares_or_ratios():
    number = Number("1.5", 1.5, 0.05, percent=True)
    assert [value for value in (0.015, 1.0152, 0.985, 1.5, 0.15) if number.rounds(value)] == [
        0.015, 1.0152, 0.985]


def test_a_wrong_prediction_decides_nothing():
    refuted = next(claim for claim in CLAIMS if claim.name == "scaled_entropy_is_maximal")
    values = of_claim(refuted)
    assert (128.0, True) in values
    assert all(setting for _, setting in values)
