"""The command line: its commands, and what becomes of an error."""

import inspect
from collections.abc import Sequence
from typing import Annotated

import typer

from mcverify import __version__
from mcverify.cli import of_claims, of_results, of_tools, terminal
from mcverify.cli.exits import (
    MEANING,
    Exit,
    check_docstrings,
    end_at_sigterm_as_at_ctrl_c,
    own_fault,
    refuse,
)
from mcverify.declare.fault import ClaimError, UsageError

app = typer.Typer(
    help="Judge claims about dot-product attention by drawing queries and keys.", epilog=MEANING,
    rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]},
)
# Each function of these modules is a command, in the order in which the help lists them.
for module in (of_claims, of_results, of_tools):
    for name, command in vars(module).items():
        if inspect.isfunction(command) and command.__module__ == module.__name__:
            app.command(name.strip("_").replace("_", "-"))(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        terminal.show(f"mcverify {__version__}")
        raise typer.Exit


@app.callback()
def before_the_command(version: Annotated[bool, typer.Option(
    "--version", is_eager=True, callback=_print_version, help="show the version and exit",
)] = False) -> None:
    """Take the options that stand before any command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    terminal.escape_what_cannot_be_encoded()
    end_at_sigterm_as_at_ctrl_c()
    try:
        check_docstrings()
        status = typer.main.get_command(app).main(arguments, "mcverify", standalone_mode=False)
        return int(status or Exit.AS_DECLARED)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "mcverify"
        return refuse(f"{error.format_message()} (`{path} --help` tells all)")
    except (UsageError, ClaimError) as error:
        return refuse(str(error))
    except OSError as error:
        return refuse(f"{error.filename or 'output'}: {error.strerror}; choose another place")
    except SystemExit:  # of typer, after a completion or when nobody reads its help
        return Exit.AS_DECLARED
    except Exception:
        return own_fault()
