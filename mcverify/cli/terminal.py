"""Print plain text, whatever it holds and wherever it goes; all that is printed comes by here."""

import os
import sys
from io import TextIOWrapper

from rich.console import Console

from mcverify.declare.text import printable

PIPE_WIDTH = 400  # a pipe has none: let no row be folded there, so that it stays a line for grep


class _Terminal(Console):
    def on_broken_pipe(self) -> None:
        """Go on silently: a run does not end because ``head`` reads no further."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def console(stderr: bool = False) -> Console:
    """Standard output or error, on which nothing is markup, an emoji or highlighted."""
    made = _Terminal(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def show(text: object, stderr: bool = False, style: str | None = None) -> None:
    """Print a text, of which no line is folded."""
    console(stderr).print(printable(str(text)), style=style, soft_wrap=True)


def escape_what_cannot_be_encoded() -> None:
    """Let a character that stdout or stderr does not know, such as √ in ASCII, be escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
