"""The commands of `moldau` that are its own: a node for development, the doctor, a look at the protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, NoReturn

import typer
from rich.console import Console

import moldau
from moldau.cli.main import TOOLS, find_tool
from moldau.cli.moldau.pipeline import command as pipeline

app = typer.Typer(
    name="moldau",
    help="Moldau, an event-streaming platform that speaks the Kafka protocol. Begin with: moldau dev",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(pipeline.app, name="pipeline")
_KAFKA_TOOLS = "Kafka's tools (the same as kafka-topics and so on)"


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    for name, (_, _, summary) in TOOLS.items():
        _add_tool(name, summary)
    try:
        app(list(arguments), prog_name="moldau")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _add_tool(name: str, summary: str) -> None:
    """Show a tool in the help; running it does not come this way (see `main`)."""

    def run_tool(context: typer.Context) -> None:
        tool = find_tool(name)
        raise typer.Exit(1 if tool is None else tool(context.args))

    app.command(
        name.removeprefix("kafka-"),
        help=summary,
        rich_help_panel=_KAFKA_TOOLS,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        add_help_option=False,
    )(run_tool)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"moldau {moldau.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def dev(
    brokers: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="How many nodes; later starts find out by themselves.",
            show_default="1",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Port of the (first) broker; 0 for a free one.",
            show_default="9092",
        ),
    ] = None,
    data: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where the data goes; the next start finds it there.")
    ] = "data",
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "--override",
            metavar="NAME=VALUE",
            help="A broker setting by Kafka's name, such as num.partitions=3; may be repeated.",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the log of the node.")] = False,
) -> None:
    """Run a ready node, or several, without any configuration, for the clients of this machine. Ctrl-C ends
    it."""
    from moldau.cli.kafka.server.command import dev as run_dev
    from moldau.cli.moldau.dev_cluster import dev_cluster, planned_brokers

    announce = Console(highlight=False, soft_wrap=True, markup=False).print

    def run_it() -> int:
        planned = planned_brokers(data)
        count = brokers or planned or 1
        run_them = partial(dev_cluster, brokers=count, port=port)
        run_one = partial(run_dev, port=9092 if port is None else port)
        run_dev_node = run_one if count == 1 and planned is None else run_them
        return run_dev_node(data=data, settings=setting or (), announce=announce, verbose=verbose)

    _exit_with(run_it)


@app.command()
def server(
    file: Annotated[str, typer.Argument(metavar="SERVER.PROPERTIES", help="The properties of the node.")],
    override: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting that wins over the file; may be repeated."),
    ] = None,
    daemon: Annotated[
        bool, typer.Option("--daemon", help="Go on in the background once the node is ready.")
    ] = False,
) -> None:
    """Run a node with a properties file, as kafka-server-start does."""
    from moldau.cli.kafka.server.command import start_main

    words = [word for item in override or [] for word in ("--override", item)]
    raise typer.Exit(start_main([*["-daemon"][: int(daemon)], file, *words]))


@app.command()
def doctor(
    bootstrap: Annotated[
        str | None,
        typer.Argument(metavar="HOST:PORT", help="The address a client uses.", show_default="localhost:9092"),
    ] = None,
    bootstrap_server: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The same, as Kafka's tools name it.")
    ] = None,
    command_config: Annotated[
        str | None, typer.Option(metavar="FILE", help="The client's properties file, to check it as well.")
    ] = None,
    timeout_ms: Annotated[int, typer.Option(metavar="MS", help="How long to wait for each answer.")] = 5000,
) -> None:
    """Find out why a client cannot connect, and what to change."""
    from moldau.cli.shared.tool import DEFAULT_BOOTSTRAP, load_config

    def look() -> int:
        properties = load_config(command_config)
        address = bootstrap or bootstrap_server or properties.get("bootstrap.servers") or DEFAULT_BOOTSTRAP
        return _examine(address, timeout_ms, properties.get("security.protocol", "PLAINTEXT").upper())

    _exit_with(look)


def _exit_with(work: Callable[[], int]) -> NoReturn:
    """End with the number that `work` gives, or with the sentence of its failure."""
    from moldau.cli.shared.arguments import UsageError
    from moldau.cli.shared.tool import INTERRUPTED, ToolError

    try:
        code = work()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (ToolError, UsageError) as error:
        _complain(str(error))
        code = 1
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "moldau":
            raise
        _complain(f'This needs {missing.name}, which is not installed: pip install "moldau[spark]"')
        code = 1
    raise typer.Exit(code)


def _complain(sentence: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(sentence, style="red", markup=False)


def _examine(bootstrap: str, timeout_ms: int, protocol: str) -> int:
    import asyncio

    from moldau.cli.moldau.doctor.command import Level, examine

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Connecting to {bootstrap} the way a client does ...", markup=False)
    marks = {Level.GOOD: ("ok", "green"), Level.NOTE: ("note", "yellow"), Level.PROBLEM: ("problem", "red")}
    problems = 0

    async def show() -> None:
        nonlocal problems
        async for finding in examine(bootstrap, timeout_ms, protocol):
            word, colour = marks[finding.level]
            console.print(f"[{colour}]{word:>8}[/]  ", end="")
            console.print(finding.what, markup=False)
            if finding.advice is not None:
                console.print(f"          -> {finding.advice}", style="dim", markup=False)
            problems += finding.level is Level.PROBLEM

    asyncio.run(show())
    if problems:
        console.print(f"{problems} problem{'s' if problems > 1 else ''} found.", style="red")
        return 1
    console.print("Clients on this machine can use this cluster.", style="green")
    return 0


@app.command()
def sql(
    statements: Annotated[
        str | None, typer.Option("--execute", "-e", metavar="SQL", help="Run these statements and end.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="Run the statements of a file and end.")
    ] = None,
    bootstrap_server: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The broker(s) to connect to first.")
    ] = "localhost:9092",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="table|json|csv", help="How results are written.")
    ] = "table",
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The Spark to run on.", show_default="in this process"),
    ] = None,
    state_dir: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Where persistent queries keep how far they are.",
            show_default="~/.local/state/moldau/sql",
        ),
    ] = None,
    command_config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Properties file with settings of the client.")
    ] = None,
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="With -e or -f: let persistent queries go on until Ctrl-C.")
    ] = False,
) -> None:
    """SQL over topics, in ksqlDB's words, on Spark: a prompt, or statements with -e and -f."""
    from moldau.cli.moldau.sql.command import SqlOptions, run_sql

    if output not in ("table", "json", "csv"):
        raise typer.BadParameter("table, json or csv", param_hint="--output")
    options = SqlOptions(
        bootstrap_server, statements, file, output, master, state_dir, command_config, keep_running
    )
    _exit_with(lambda: run_sql(options))


@app.command()
def protocol(
    api: Annotated[str, typer.Argument(help="The name of an API or of a message, such as Produce.")],
    version: Annotated[int | None, typer.Argument(help="The version; the newest if not given.")] = None,
) -> None:
    """Print the code that reads and writes a message of the protocol."""
    from moldau.cli.moldau.protocol_source import print_source

    raise typer.Exit(print_source(api, version, sys.stdout))
