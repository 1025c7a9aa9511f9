"""The options of `moldau dev`, and the choice between one node in this process and a cluster of processes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from moldau.cli.moldau.exits import exit_with

Data = Annotated[
    str, typer.Option(metavar="FOLDER", help="Folder for the data, which the next start finds there.")
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "--override",
        metavar="NAME=VALUE",
        help="A broker configuration by Kafka's name, such as num.partitions=3. May be repeated.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print the log of each node.")]
Secure = Annotated[
    bool,
    typer.Option(
        "--secure",
        help="Listen with TLS and SCRAM, and print what clients need. A cluster keeps its security.",
    ),
]
Tiered = Annotated[
    bool, typer.Option("--tiered", help="Enable tiered storage, with the folder DATA-remote as the store.")
]
Registry = Annotated[bool, typer.Option("--registry", help="Also run a schema registry.")]
Rest = Annotated[bool, typer.Option("--rest", help="Also run a REST proxy.")]
Connect = Annotated[bool, typer.Option("--connect", help="Also run a Connect worker.")]
AllServices = Annotated[
    bool, typer.Option("--all", help="Run all services: schema registry, REST proxy, Connect, web console.")
]
RegistryPort = Annotated[
    int, typer.Option(metavar="PORT", min=0, max=65535, help="Port of the schema registry.")
]
LogFormat = Annotated[
    str, typer.Option(metavar="FORMAT", help="Log as text, or as lines of JSON (json).", show_default="text")
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=1,
        max=65535,
        help="Port of /metrics, /healthz and /readyz of the first broker; the others take the next ones.",
        show_default="none",
    ),
]
WebConsole = Annotated[bool, typer.Option("--console", help="Also run the web console.")]
ConsolePort = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=0,
        max=65535,
        help="Port of the web console, which it starts.",
        show_default="8080",
    ),
]
LagWindow = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=1,
        max=3600,
        help="Time in seconds over which the console judges lag.",
        show_default="120",
    ),
]
ConnectPort = Annotated[
    int, typer.Option(metavar="PORT", min=0, max=65535, help="Port of the Connect worker.")
]
RestPort = Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="Port of the REST proxy.")]
_CONSOLE_PORT: Final = 8080
_REMOTE_METADATA_REPLICAS: Final = 3


def dev(
    brokers: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Number of brokers. A cluster with existing data keeps its number.",
            show_default="1",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Port of the first broker; the others take the next ones. 0 takes any free port.",
            show_default="9092",
        ),
    ] = None,
    data: Data = "data",
    setting: Setting = None,
    secure: Secure = False,
    tiered: Tiered = False,
    registry: Registry = False,
    rest: Rest = False,
    connect: Connect = False,
    all_services: AllServices = False,
    registry_port: RegistryPort = 8081,
    rest_port: RestPort = 8082,
    console: WebConsole = False,
    console_port: ConsolePort = None,
    lag_window: LagWindow = None,
    connect_port: ConnectPort = 8083,
    metrics_port: MetricsPort = None,
    log_format: LogFormat = "text",
    verbose: Verbose = False,
) -> None:
    """Run a broker, or a cluster of brokers, without any configuration, until Ctrl-C.

    Only clients on this machine can connect. Data is kept between starts.
    """
    from moldau.cli.moldau.dev.cluster import dev_cluster, planned_brokers
    from moldau.cli.moldau.dev.node import DEFAULT_PORT, dev_node
    from moldau.cli.moldau.dev.services import DevServices
    from moldau.cli.shared.process import checked_format

    announce = Console(highlight=False, soft_wrap=True, markup=False).print

    def work() -> int:
        planned = planned_brokers(data)
        count = brokers or planned or 1
        one = partial(dev_node, port=DEFAULT_PORT if port is None else port)
        several = partial(dev_cluster, brokers=count, port=port)
        start = partial(one if count == 1 and planned is None else several, data=data, announce=announce)
        start = partial(start, metrics_port=metrics_port, log_format=checked_format(log_format))
        chosen = [(registry, registry_port), (rest, rest_port), (connect, connect_port)]
        ports = [each if wanted or all_services else None for wanted, each in chosen]
        ports.append(_CONSOLE_PORT if (console or all_services) and console_port is None else console_port)
        with DevServices(*ports, lag_window_s=lag_window, verbose=verbose) as services:
            # Of a setting that is given twice, the last one counts: that of the user.
            remote = _tiered_settings(data, count) if tiered else ()
            settings = (*services.broker_settings, *remote, *(setting or ()))
            return start(settings=settings, verbose=verbose, secure=secure, services=services)

    exit_with(work)


def _tiered_settings(data: str, brokers: int) -> tuple[str, ...]:
    """Return the settings of brokers whose remote store is a folder; topics set `remote.storage.enable`.

    The folder is beside the data folder, because a log directory contains nothing but logs.
    """
    folder = Path(data).absolute()
    return (
        "remote.log.storage.system.enable=true",
        "remote.log.storage.manager.class.name=moldau.tiered.stores.folder.FolderStore",
        f"rsm.config.dir={folder.with_name(f'{folder.name}-remote')}",
        f"rlmm.config.remote.log.metadata.topic.replication.factor={min(_REMOTE_METADATA_REPLICAS, brokers)}",
        "rlmm.config.remote.log.metadata.topic.num.partitions=5",
        "remote.log.manager.task.interval.ms=5000",
    )
