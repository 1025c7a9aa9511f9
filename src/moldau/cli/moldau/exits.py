"""The exit of `moldau` commands: with the code of their work, or with a message about its failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import typer
from rich.console import Console

from moldau.cli.shared.arguments import UsageError
from moldau.cli.shared.tool import INTERRUPTED, ToolError


def exit_with(work: Callable[[], int]) -> NoReturn:
    """Exit with the code that `work` returns, or print why it failed and exit with 1."""
    try:
        code = work()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (ToolError, UsageError) as error:
        _print_failure(str(error))
        code = 1
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "moldau":
            raise
        _print_failure(f'This needs {missing.name}, which is not installed: pip install "moldau[spark]"')
        code = 1
    raise typer.Exit(code)


def _print_failure(message: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, style="red", markup=False)
