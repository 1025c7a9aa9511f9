"""The Typer application behind `moldau`: its own commands, and Kafka's tools as they appear in the help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

import moldau
from moldau.cli.moldau.certificates import certificates
from moldau.cli.moldau.dev.command import dev
from moldau.cli.moldau.doctor.command import doctor
from moldau.cli.moldau.pipeline.command import pipeline
from moldau.cli.moldau.protocol import protocol
from moldau.cli.moldau.sql.command import sql
from moldau.cli.tools import COMMANDS, TOOLS, Tool

app = typer.Typer(
    name="moldau",
    help="Moldau, an event-streaming platform that speaks the Kafka protocol. Start with: moldau dev\n\n"
    "Every Kafka tool is also a command: `moldau topics` is the same as `kafka-topics`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(pipeline, name="pipeline")
app.command()(dev)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return the exit code."""
    for name, tool in {**COMMANDS, **TOOLS}.items():
        _list_tool(name, tool)
    try:
        app(list(arguments), prog_name="moldau")
    except SystemExit as exit_request:
        code = exit_request.code
        return code if isinstance(code, int) else int(code is not None)
    return 0


def _list_tool(name: str, tool: Tool) -> None:
    """List a tool in the help; `moldau.cli.main` runs it without Typer."""

    def run_tool(context: typer.Context) -> None:
        raise typer.Exit(tool.load()(context.args))

    app.command(
        name.removeprefix("kafka-"),
        help=tool.summary,
        rich_help_panel=tool.heading,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )(run_tool)


def _show_version(requested: bool) -> None:
    if requested:
        print(f"moldau {moldau.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


@app.command()
def server(
    file: Annotated[str, typer.Argument(metavar="SERVER.PROPERTIES", help="Properties file of the node.")],
    override: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A configuration that replaces the file's. May be repeated."),
    ] = None,
    daemon: Annotated[
        bool, typer.Option("--daemon", help="Run in the background; return once the node is ready.")
    ] = False,
) -> None:
    """Run a node with a properties file, like kafka-server-start."""
    from moldau.cli.kafka.server.command import start_main

    words = [word for item in override or [] for word in ("--override", item)]
    raise typer.Exit(start_main([*["-daemon"][: int(daemon)], file, *words]))


app.command()(doctor)
app.command()(certificates)
app.command()(sql)
app.command()(protocol)
