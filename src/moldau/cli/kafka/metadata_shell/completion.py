"""What the tab key offers in the metadata shell: commands, then paths."""

from __future__ import annotations

from moldau.cli.kafka.metadata_shell.commands import COMMANDS, Shell
from moldau.cli.kafka.metadata_shell.paths import completions


def candidates(shell: Shell, line: str) -> list[str]:
    """What the last word of a line may become."""
    command, *arguments = line.lstrip().split(" ")
    if not arguments:
        return [f"{name} " for name in COMMANDS if name.startswith(command)]
    if command == "man":
        return [name for name in COMMANDS if name.startswith(arguments[-1])]
    if command in COMMANDS and COMMANDS[command].arguments and command != "history":
        return completions(shell.tree, arguments[-1], shell.working_directory)
    return []


class Completer:
    """Candidates one after the other, the way readline asks for them."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._found: list[str] = []

    def candidate(self, line: str, state: int) -> str | None:
        if state == 0:
            self._found = candidates(self._shell, line)
        return self._found[state] if state < len(self._found) else None
