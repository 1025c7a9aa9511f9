"""The `moldau` command. Every Kafka tool is also a subcommand.

A Kafka tool runs without loading Typer, so `moldau topics --list` starts as quickly as `kafka-topics --list`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moldau.cli.tools import find_tool

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        tool = find_tool(arguments[0]) if arguments else None
        if tool is not None:
            return tool(arguments[1:])
        from moldau.cli.moldau.app import run

        return run(arguments)
    except KeyboardInterrupt:
        # Ctrl-C while modules are still being imported.
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
