"""Make the control characters of a text visible, which a terminal would act upon."""

# Those that would move a cursor or recolour a terminal, but for the end of a line and tabs.
CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))
           if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """The text with its control characters, which a name may hold, made visible.

    >>> print(printable("red \\x1b[31m"))
    red \\x1b[31m
    """
    return text.translate(CONTROL)
