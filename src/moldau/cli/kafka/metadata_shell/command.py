"""kafka-metadata-shell: browse the metadata of a cluster as a tree of files.

The metadata is read from a snapshot or segment, from the folder of a node, or from running controllers. The
tool runs the command on its command line, or reads commands from a prompt if there is none.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser, UsageError
from moldau.cli.shared.connection import COMMAND_CONFIG, admin_from
from moldau.cli.shared.tool import run_tool, warn

if TYPE_CHECKING:
    from moldau.cli.kafka.metadata_shell.tree import Directory


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv, report=lambda text: warn(f"Error: {text}"))


def _parser() -> ToolParser:
    parser = ToolParser("kafka-metadata-shell")
    parser.add_argument("--snapshot", "-s", metavar="FILE", help="Read this snapshot or segment.")
    parser.add_argument(
        "--directory", "-d", metavar="DIR", help="Read this log directory, or the folder of the metadata log."
    )
    parser.add_argument(
        "--controllers",
        "-c",
        metavar="HOST:PORT",
        help="Read the current metadata from running controllers.",
    )
    parser.hidden("--bootstrap-controller", dest="controllers")
    parser.option("--command-config", "FILE", COMMAND_CONFIG)
    parser.add_argument(
        "command", nargs="*", help="The command to run, such as 'ls /'; without one, start a prompt."
    )
    return parser


def _execute(options: argparse.Namespace) -> None:
    from moldau.cli.kafka.metadata_shell.commands import Shell
    from moldau.cli.kafka.metadata_shell.prompt import run_prompt

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
            run_prompt(Shell(load, width=width))


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
