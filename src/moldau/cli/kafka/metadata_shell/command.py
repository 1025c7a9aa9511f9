"""kafka-metadata-shell: browse the metadata of a cluster like a file tree.

The metadata is that of a snapshot or a segment of the log, of a node's folder, or of running controllers.
With a command on the command line it runs that; otherwise it asks for commands, with history and completion
where there is a terminal.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.tool import admin_from, run_tool, warn

if TYPE_CHECKING:
    from moldau.cli.kafka.metadata_shell.commands import Shell
    from moldau.cli.kafka.metadata_shell.tree import Directory

PROMPT = ">> "


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv, report=lambda text: warn(f"Error: {text}"))


def _parser() -> ToolParser:
    parser = ToolParser("kafka-metadata-shell", "Browse the metadata of a cluster like a file tree.")
    parser.add_argument(
        "--snapshot", "-s", metavar="FILE", help="A snapshot or a segment of the metadata log."
    )
    parser.add_argument(
        "--directory", "-d", metavar="DIR", help="The folder of a node, or of its metadata log."
    )
    parser.add_argument(
        "--controllers", "-c", metavar="HOST:PORT", help="Running controllers: the metadata as it is now."
    )
    parser.hidden("--bootstrap-controller", dest="controllers")
    parser.option("--command-config", "FILE", "Properties file with settings of the client.")
    parser.add_argument("command", nargs="*", help="The command to run; none for a prompt. Try 'help'.")
    return parser


def _execute(options: argparse.Namespace) -> None:
    from moldau.cli.kafka.metadata_shell.commands import Shell

    with ExitStack() as stack:
        load = _source(options, stack)
        if options.command:
            for line in Shell(load).run(options.command):
                print(line)
        else:
            print("Loading...")
            load()
            print("Starting...")
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            _ask_for_commands(Shell(load, width=width))


def _source(options: argparse.Namespace, stack: ExitStack) -> Callable[[], Directory]:
    from moldau.cli.kafka.metadata_shell.sources import FromControllers, from_directory, from_file

    given = [source for source in (options.snapshot, options.directory, options.controllers) if source]
    if len(given) != 1:
        raise UsageError("one of the arguments --snapshot/-s --directory/-d --controllers/-c is required")
    if options.controllers:
        admin = stack.enter_context(admin_from({"bootstrap.controllers": options.controllers}, options))
        return FromControllers(admin).tree
    metadata = from_file(options.snapshot) if options.snapshot else from_directory(options.directory)
    tree = metadata.tree()
    return lambda: tree


def _ask_for_commands(shell: Shell) -> None:
    from moldau.cli.kafka.metadata_shell.commands import ShellExit

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
    """Arrow keys, history, and the tab key."""
    import readline

    from moldau.cli.kafka.metadata_shell.completion import Completer

    completer = Completer(shell)
    readline.set_completer_delims(" ")
    readline.set_completer(
        lambda _, state: completer.candidate(readline.get_line_buffer()[: readline.get_endidx()], state)
    )
    readline.parse_and_bind("tab: complete")
