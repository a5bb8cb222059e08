"""Words after a command: what is read from them, what is refused."""

import pytest
from typer import BadParameter

from mcverify.cli.options import duration


@pytest.mark.parametrize(("text", "seconds"), [
    ("90s", 90), ("10m", 600), ("1h", 3600), ("1h30m", 5400), ("0.5s", 0.5), ("1h0m5s", 3605)])
def test_a_duration_has_units(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "0s", "-1s", "10 m", "1d", "5s3m", "1.2.3s", "soon"])
def test_what_is_no_duration_is_refused_with_examples(text):
    with pytest.raises(BadParameter, match="must be a time of more than 0"):
        duration(text)
