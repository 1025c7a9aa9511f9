"""The prompt of the metadata shell: reading commands, with history and completion on a terminal."""

from __future__ import annotations

import shlex
import sys

from moldau.cli.kafka.metadata_shell.commands import COMMANDS, Shell, ShellExit
from moldau.cli.kafka.metadata_shell.paths import completions

PROMPT = ">> "


def run_prompt(shell: Shell) -> None:
    """Run commands from standard input until `exit` or the end of the input."""
    if sys.stdin.isatty():
        _use_readline(shell)
    while True:
        try:
            line = input(PROMPT if sys.stdin.isatty() else "")
            words = shlex.split(line)
        except EOFError:
            return
        except KeyboardInterrupt:
            print()
            continue
        except ValueError as error:
            print(error)
            continue
        if line.strip():
            shell.history.append(line)
        try:
            for printed in shell.run(words):
                print(printed)
        except ShellExit:
            return


def _use_readline(shell: Shell) -> None:
    """Enable line editing, history and the tab key."""
    import readline

    completer = Completer(shell)
    readline.set_completer_delims(" ")
    readline.set_completer(
        lambda _, state: completer.candidate(readline.get_line_buffer()[: readline.get_endidx()], state)
    )
    readline.parse_and_bind("tab: complete")


def candidates(shell: Shell, line: str) -> list[str]:
    """Return the completions of the last word of a line: command names, then paths."""
    command, *arguments = line.lstrip().split(" ")
    if not arguments:
        return [f"{name} " for name in COMMANDS if name.startswith(command)]
    if command == "man":
        return [name for name in COMMANDS if name.startswith(arguments[-1])]
    if command in COMMANDS and COMMANDS[command].arguments and command != "history":
        return completions(shell.tree, arguments[-1], shell.working_directory)
    return []


class Completer:
    """Returns candidates one at a time, as readline requests them."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._found: list[str] = []

    def candidate(self, line: str, state: int) -> str | None:
        if state == 0:
            self._found = candidates(self._shell, line)
        return self._found[state] if state < len(self._found) else None
