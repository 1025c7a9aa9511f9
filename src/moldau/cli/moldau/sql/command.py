"""The options of `moldau sql`."""

from __future__ import annotations

from typing import Annotated

import typer

from moldau.cli.moldau.exits import exit_with
from moldau.cli.shared.connection import COMMAND_CONFIG, DEFAULT_BOOTSTRAP


def sql(
    statements: Annotated[
        str | None, typer.Option("--execute", "-e", metavar="SQL", help="Run these statements and exit.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Run the statements of this file and exit."),
    ] = None,
    bootstrap_server: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Broker(s) to connect to first.")
    ] = DEFAULT_BOOTSTRAP,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="table|json|csv", help="Format of results.")
    ] = "table",
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Spark master, such as local[2].", show_default="in this process"),
    ] = None,
    state_dir: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the checkpoints of persistent queries.",
            show_default="~/.local/state/moldau/sql",
        ),
    ] = None,
    command_config: Annotated[str | None, typer.Option(metavar="FILE", help=COMMAND_CONFIG)] = None,
    keep_running: Annotated[
        bool,
        typer.Option("--keep-running", help="With -e or -f: keep persistent queries running until Ctrl-C."),
    ] = False,
) -> None:
    """Query topics with ksqlDB's SQL on Spark: at a prompt, or statements with -e and -f."""
    if output not in ("table", "json", "csv"):
        raise typer.BadParameter("must be table, json or csv", param_hint="--output")

    def run() -> int:
        from moldau.cli.moldau.sql.run import SqlOptions, run_sql

        return run_sql(
            SqlOptions(
                bootstrap_server, statements, file, output, master, state_dir, command_config, keep_running
            )
        )

    exit_with(run)
