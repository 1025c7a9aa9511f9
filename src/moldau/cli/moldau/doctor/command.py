"""The options of `moldau doctor`, and how its findings are printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from moldau.cli.moldau.exits import exit_with
from moldau.cli.shared.connection import DEFAULT_BOOTSTRAP, load_client_config

if TYPE_CHECKING:
    from moldau.cli.moldau.doctor.permissions import Checked


def doctor(
    bootstrap: Annotated[
        str | None,
        typer.Argument(
            metavar="HOST:PORT", help="Address that a client uses.", show_default=DEFAULT_BOOTSTRAP
        ),
    ] = None,
    bootstrap_server: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The same, by the name that Kafka's tools use.")
    ] = None,
    command_config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Properties file of the client, which is also checked.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC", help="Also check the permissions on this topic. May be repeated."),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP", help="Also check the permissions on this group. May be repeated."),
    ] = None,
    timeout_ms: Annotated[
        int, typer.Option(metavar="MS", help="Milliseconds to wait for each connection and each response.")
    ] = 5000,
) -> None:
    """Find out why a client cannot connect to a cluster or use a topic, and what to change."""

    def work() -> int:
        properties = load_client_config(command_config)
        address = bootstrap or bootstrap_server or properties.get("bootstrap.servers") or DEFAULT_BOOTSTRAP
        from moldau.cli.moldau.doctor.permissions import Checked

        checked = [Checked.topic(name) for name in topic or ()] + [
            Checked.group(name) for name in group or ()
        ]
        return _print_findings(address, timeout_ms, properties, checked)

    exit_with(work)


def _print_findings(
    bootstrap: str, timeout_ms: int, properties: Mapping[str, str], checked: Sequence[Checked]
) -> int:
    import asyncio

    from moldau.cli.moldau.doctor.diagnosis import examine
    from moldau.cli.moldau.doctor.findings import Level

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Connecting to {bootstrap} as a client does ...", markup=False)
    marks = {Level.GOOD: ("ok", "green"), Level.NOTE: ("note", "yellow"), Level.PROBLEM: ("problem", "red")}
    problems = 0

    async def show() -> None:
        nonlocal problems
        async for finding in examine(bootstrap, timeout_ms, properties, checked):
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
