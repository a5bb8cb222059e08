"""Text for people: control characters made visible, and what an unknown word may have meant."""

import difflib
from collections.abc import Collection

# Those that would move a cursor or recolour a terminal, but for the end of a line and tabs.
CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))
           if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """The text with its control characters, which a name may hold, made visible.

    >>> print(printable("red \\x1b[31m"))
    red \\x1b[31m
    """
    return text.translate(CONTROL)


def suggestion(word: str, known: Collection[str], otherwise: str) -> str:
    """What an unknown word may have been meant for: the nearest known one, or all of them.

    >>> suggestion("scal", ["scale", "keys"], "known are")
    'did you mean scale?'
    """
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}?" if near else f"{otherwise} {', '.join(known)}"
