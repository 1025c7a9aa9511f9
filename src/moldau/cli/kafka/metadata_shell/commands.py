"""The commands of the metadata shell: cat, cd, exit, find, help, history, ls, man, pwd, tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from moldau.cli.kafka.metadata_shell.paths import Found, find
from moldau.cli.kafka.metadata_shell.tree import SHORTCUTS, Directory, Leaf, Node


class ShellExit(Exception):
    """Raised by the command `exit`."""


class Shell:
    """The state of the shell: the tree, the working directory, the history, the width of the terminal."""

    def __init__(self, load: Callable[[], Directory], *, width: int | None = None) -> None:
        """`load` returns the current tree; `width` is None without a terminal."""
        self._load = load
        self.width = width
        self.working_directory = "/"
        self.history: list[str] = []

    @property
    def tree(self) -> Directory:
        return self._load()

    def find(self, path: str) -> list[Found]:
        return find(self.tree, path, self.working_directory)

    def run(self, words: Sequence[str]) -> Iterator[str]:
        """Run a command and yield the lines that it prints."""
        given = [word for word in words if word]
        if not given:
            return
        command = COMMANDS.get(given[0])
        if command is None:
            names = ", ".join(f"'{name}'" for name in COMMANDS)
            yield f"invalid choice: '{given[0]}' (choose from {names})"
        elif len(given) - 1 < command.least:
            yield "too few arguments"
        elif command.most is not None and len(given) - 1 > command.most:
            yield f"unrecognized arguments: '{' '.join(given[command.most + 1 :])}'"
        else:
            yield from command.run(self, given[1:])


class Command(NamedTuple):
    description: str
    #: Names and descriptions of the arguments.
    arguments: tuple[tuple[str, str], ...]
    least: int
    most: int | None
    run: Callable[[Shell, list[str]], Iterator[str]]


def _cat(shell: Shell, targets: list[str]) -> Iterator[str]:
    for target in targets:
        found = shell.find(target)
        if not found:
            yield f"cat: {target}: No such file or directory."
        for each in found:
            yield f"cat: {target}: Is a directory" if isinstance(each.node, Directory) else each.node.text


def _tree(shell: Shell, targets: list[str]) -> Iterator[str]:
    for target in targets:
        found = shell.find(target)
        if not found:
            yield f"tree: {target}: No such file or directory."
        for each in found:
            yield from _printed(each.node, "")


def _printed(node: Node, indentation: str) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield indentation + node.text
        return
    children = node.make()
    for name in sorted(children):
        yield f"{indentation}{name}:"
        yield from _printed(children[name], indentation + "  ")


def _find(shell: Shell, paths: list[str]) -> Iterator[str]:
    for path in paths or ["."]:
        found = shell.find(path)
        if not found:
            yield f"find: {path}: no such file or directory."
        for each in found:
            yield from _walk(path, each.node)


def _walk(path: str, node: Node) -> Iterator[str]:
    yield path
    if isinstance(node, Directory):
        children = node.make()
        for name in sorted(children):
            yield from _walk(f"/{name}" if path == "/" else f"{path}/{name}", children[name])


def _ls(shell: Shell, targets: list[str]) -> Iterator[str]:
    files: list[str] = []
    directories: list[tuple[str, list[str]]] = []
    for target in targets or ["."]:
        found = shell.find(target)
        if not found:
            yield f"ls: {target}: no such file or directory."
        for each in found:
            if isinstance(each.node, Directory):
                directories.append((each.name, each.node.names()))
            else:
                files.append(each.name)
    yield from in_columns(files, shell.width)
    with_names, gap = bool(files) or len(directories) > 1, bool(files)
    for name, children in directories:
        if with_names and children:
            yield f"\n{name}:" if gap else f"{name}:"
        gap = gap or with_names
        yield from in_columns(children, shell.width)


def in_columns(entries: Sequence[str], width: int | None) -> Iterator[str]:
    """Arrange entries in as many columns as fit, filled from top to bottom."""
    widths, rows = _columns(entries, width)
    for row in range(rows if entries else 0):
        cells = entries[row::rows]
        padded = [f"{cell:<{size}}" for cell, size in zip(cells, widths, strict=False)]
        yield "".join(padded[:-1]) + (cells[-1] if len(cells) == len(widths) else padded[-1])


def _columns(entries: Sequence[str], width: int | None) -> tuple[list[int], int]:
    """Return the widths of the columns and the number of rows."""
    for count in range((width or 0) // 4, 1, -1):
        rows = -(-len(entries) // count)
        columns = [entries[first : first + rows] for first in range(0, len(entries), rows or 1)]
        widths = [max(len(entry) for entry in column) + 2 for column in columns]
        if len(widths) == count and sum(widths) <= (width or 0):
            return widths, rows
    return [max(map(len, entries), default=0) + 2], len(entries)


def _cd(shell: Shell, targets: list[str]) -> Iterator[str]:
    target = targets[0] if targets else "/"
    found = shell.find(target)
    if not found:
        yield f"cd: {target}: no such directory."
    for each in found:
        if isinstance(each.node, Directory):
            shell.working_directory = each.absolute
        else:
            yield f"cd: {target}: not a directory."


def _pwd(shell: Shell, _: list[str]) -> Iterator[str]:
    yield shell.working_directory


def _exit(shell: Shell, _: list[str]) -> Iterator[str]:
    raise ShellExit


def _history(shell: Shell, arguments: list[str]) -> Iterator[str]:
    wanted = arguments[0] if arguments else str(len(shell.history))
    if not wanted.isdecimal():
        yield f"argument numEntriesToShow: could not convert '{wanted}' to Integer"
        return
    numbered = list(enumerate(shell.history, 1))
    for number, line in numbered[max(0, len(numbered) - int(wanted)) :]:
        yield f"{number: 5d}  {line}"


def _man(shell: Shell, names: list[str]) -> Iterator[str]:
    command = COMMANDS.get(names[0])
    if command is None:
        yield f"man: unknown command {names[0]}. Type help to get a list of commands."
        return
    yield f"{names[0]}: {command.description}\n"
    yield f"usage: {' '.join([names[0], *(f'[{name}]' for name, _ in command.arguments)])}"
    for name, text in command.arguments:
        yield f"\npositional arguments:\n  {name:<20} {text}"


def _help(shell: Shell, _: list[str]) -> Iterator[str]:
    yield "Welcome to the metadata shell.\n"
    for name, command in COMMANDS.items():
        yield f"  {name:<10} {command.description}"
    yield f"\nShortcuts into /image: {', '.join(f'/{name}' for name in SHORTCUTS)}"


_PATHS = (("targets", "The paths of metadata nodes."),)
COMMANDS: dict[str, Command] = {
    "cat": Command("Show the contents of metadata files.", _PATHS, 1, None, _cat),
    "cd": Command("Set the current working directory.", (("target", "The directory."),), 0, 1, _cd),
    "exit": Command("Exit the metadata shell.", (), 0, 0, _exit),
    "find": Command("Search for nodes in the directory hierarchy.", _PATHS, 0, None, _find),
    "help": Command("Display this help message.", (), 0, 0, _help),
    "history": Command(
        "Print command history.", (("numEntriesToShow", "Number of entries."),), 0, 1, _history
    ),
    "ls": Command("List metadata nodes.", _PATHS, 0, None, _ls),
    "man": Command("Show the help text for a specific command.", (("cmd", "The command."),), 1, 1, _man),
    "pwd": Command("Print the current working directory.", (), 0, 0, _pwd),
    "tree": Command("Show the contents of metadata nodes in a tree structure.", _PATHS, 1, None, _tree),
}
