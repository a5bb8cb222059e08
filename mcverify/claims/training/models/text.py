"""Text that ships with Python, the same in every version of it: the names of characters."""

import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

LAST = 0x2800  # of the code points whose names are read
HELD_OUT = 10  # of so many pieces one is for validation
PIECE = 2048  # characters
CHARACTERS = "\n -0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@lru_cache
def names() -> str:
    """The names of Unicode 3.2's characters up to U+27FF, a line each, in the order of their codes.

    Python keeps that version's database beside the newest one, and names of characters never
    change. Neighbours have like names, so that what stands in the line above is worth a look.

    >>> names().splitlines()[34:36], len(names())
    (['LATIN CAPITAL LETTER B', 'LATIN CAPITAL LETTER C'], 183253)
    """
    names = (unicodedata.ucd_3_2_0.name(chr(code), "") for code in range(LAST))
    return "".join(f"{name}\n" for name in names if name)


@lru_cache
def pieces() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The text as numbers of characters, in pieces: (pieces, PIECE) to train on, and to validate."""
    text = names()
    numbers = np.array([CHARACTERS.index(character) for character in text])
    whole = numbers[: len(numbers) // PIECE * PIECE].reshape(-1, PIECE)
    held_out = np.arange(len(whole)) % HELD_OUT == HELD_OUT - 1
    return whole[~held_out], whole[held_out]


def windows(
    rng: np.random.Generator, held_out: bool, count: int, length: int
) -> NDArray[np.int64]:
    """(count, length + 1) characters from random places of the text."""
    of = pieces()[int(held_out)]
    piece, start = rng.integers(len(of), size=count), rng.integers(PIECE - length, size=count)
    drawn: NDArray[np.int64] = of[piece[:, None], start[:, None] + np.arange(length + 1)]
    return drawn
