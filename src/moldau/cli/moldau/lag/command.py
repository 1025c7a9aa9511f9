"""The options of `moldau lag`, and its modes: once, until Ctrl-C, or as a service."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from moldau.base.json_log import configure_logging
from moldau.cli.shared.arguments import ToolParser, UsageError, refuse_together
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers, load_client_config
from moldau.cli.shared.process import add_process_options, overrides, start_stop_watcher
from moldau.cli.shared.tool import ToolError, run_tool
from moldau.cli.tools import COMMANDS

if TYPE_CHECKING:
    from moldau.lag.alerts import Webhook
    from moldau.lag.evaluation.state import LagRules
    from moldau.lag.evaluation.verdicts import LagSnapshot
    from moldau.lag.monitor import LagMonitor

_WINDOW_S: Final = 120.0
_INTERVAL_S: Final = 10.0
#: The longest history: a day of rounds per minute.
_MAX_INTERVALS: Final = 1440
#: Exit codes of --once; 1 is a failure, as in all commands.
_WARN, _ERR = 2, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run `moldau lag` and return the exit code."""
    return run_tool(new_parser, _execute, argv)


def new_parser() -> ToolParser:
    parser = ToolParser("moldau lag", COMMANDS["lag"].summary, _notes)
    add_bootstrap_options(parser, old_broker_list=False)
    names = "May be repeated; a name or a regular expression."
    for option, text in (
        ("--group", "Only this group, with its partitions."),
        ("--exclude-group", "Not this group."),
        ("--topic", "Only this topic."),
        ("--exclude-topic", "Not this topic."),
    ):
        parser.option(option, "NAME", f"{text} {names}", action="append", default=[])
    parser.option(
        "--window", "SECONDS", f"Time over which lag is judged, {_WINDOW_S:.0f} by default.", type=float
    )
    # The name of this option of the console.
    parser.hidden("--lag-window", dest="window", type=float)
    parser.option(
        "--interval",
        "SECONDS",
        f"Time between two observations, {_INTERVAL_S:.0f} by default, at most a third of the window.",
        type=float,
    )
    parser.option("--allowed-lag", "RECORDS", "Lag that is always OK, 0 by default.", type=int, default=0)
    parser.option(
        "--minimum-complete",
        "FRACTION",
        "Part of the window, from 0 to 1, that must be observed before a verdict; 1 by default.",
        type=float,
        default=1.0,
    )
    parser.flag("--once", "Print and exit: at once, or after --window if that is given.")
    parser.flag("--watch", "Print after every interval until Ctrl-C. This is the default.")
    parser.flag("--partitions", "Show every partition.")
    parser.flag("--json", "Print one line of JSON instead of a table.")
    _add_service_options(parser)
    return parser


def _add_service_options(parser: ToolParser) -> None:
    parser.option("--serve", "PORT", "Serve /metrics and Burrow's HTTP API on this port.", type=int)
    parser.option("--host", "HOST", "Address for --serve, 127.0.0.1 by default.", default="127.0.0.1")
    parser.option(
        "--set",
        "NAME=VALUE",
        "A setting of the HTTP server by Confluent's name, such as listeners, ssl.* and authentication.*. "
        "May be repeated.",
        action="append",
        default=[],
    )
    parser.option("--cluster", "NAME", "Name of the cluster in Burrow's API; the cluster id by default.")
    parser.option(
        "--alert-webhook", "URL", "Send a POST with JSON to this URL when the status of a group changes."
    )
    parser.add_argument("--verbose", "-v", action="store_true", help="Log warnings about missing data.")
    add_process_options(parser)


def _notes() -> str:
    return (
        "Exit code of --once: 0 all groups are OK, 2 a group has the status WARN, 3 a group has the status\n"
        "STOP, STALL or REWIND, 1 the lag could not be read."
    )


def _execute(options: argparse.Namespace) -> int:
    refuse_together(options, "once", ["watch", "serve"])
    refuse_together(options, "serve", ["watch", "json", "partitions"])
    bootstrap = bootstrap_servers(options)
    rules = _rules(options)
    level = logging.WARNING if options.verbose else logging.ERROR
    configure_logging(options.log_format, level, sys.stderr)
    properties = load_client_config(options.command_config) | {"bootstrap.servers": bootstrap or ""}
    properties.setdefault("client.id", "moldau-lag")
    if options.serve is not None:
        return _serve(options, rules, properties)
    return asyncio.run(_run(options, rules, properties))


async def _run(options: argparse.Namespace, rules: LagRules, properties: dict[str, str]) -> int:
    monitor = _monitor(options, rules, properties)
    webhook = _webhook(options, monitor)
    show = _json if options.json else _tables(options)
    try:
        return await (_once if options.once else _watch)(monitor, options, show)
    finally:
        await monitor.close()
        if webhook is not None:
            await webhook.close()


def _serve(options: argparse.Namespace, rules: LagRules, properties: dict[str, str]) -> int:
    from moldau.base.clock import SystemClock
    from moldau.http.run import Hosted, run_loop, serve
    from moldau.http.settings import HttpListener, HttpSettings
    from moldau.lag.serving.service import LagService

    start_stop_watcher(options)
    listener = HttpListener(options.host, options.serve, tls=False)
    http = {"listeners": listener.url} | overrides(options.set)
    settings = HttpSettings.from_properties(http, default_port=options.serve)

    def on_ready(urls: Sequence[str]) -> None:
        print(f"Lag monitor is ready: {', '.join(urls)}", flush=True)

    monitor = _monitor(options, rules, properties)
    service = LagService(monitor, options.cluster, _webhook(options, monitor))
    return run_loop(serve([Hosted(service, settings, on_ready)], SystemClock()))


def _monitor(options: argparse.Namespace, rules: LagRules, properties: dict[str, str]) -> LagMonitor:
    from moldau.lag.filters import NameFilter
    from moldau.lag.monitor import LagMonitor

    return LagMonitor(
        properties,
        rules,
        groups=NameFilter(options.group, options.exclude_group),
        topics=NameFilter(options.topic, options.exclude_topic),
    )


def _webhook(options: argparse.Namespace, monitor: LagMonitor) -> Webhook | None:
    if not options.alert_webhook:
        return None
    from moldau.lag.alerts import Webhook

    if not options.alert_webhook.startswith(("http://", "https://")):
        raise UsageError("--alert-webhook must be an http or https URL")
    webhook = Webhook(options.alert_webhook, options.cluster)
    monitor.on_change.append(webhook)
    return webhook


def _rules(options: argparse.Namespace) -> LagRules:
    from moldau.lag.evaluation.state import LagRules

    window = _WINDOW_S if options.window is None else options.window
    interval = min(_INTERVAL_S, window / 3) if options.interval is None else options.interval
    if not interval >= 0.05:
        raise UsageError("--interval must be at least 0.05 seconds")
    if not 3 <= window / interval <= _MAX_INTERVALS:
        raise UsageError(f"--window must be 3 to {_MAX_INTERVALS} times --interval ({interval:g} s)")
    if options.allowed_lag < 0:
        raise UsageError("--allowed-lag must be at least 0")
    if not 0 <= options.minimum_complete <= 1:
        raise UsageError("--minimum-complete must be between 0 and 1")
    return LagRules(
        round(window * 1000), round(interval * 1000), options.allowed_lag, options.minimum_complete
    )


async def _once(monitor: LagMonitor, options: argparse.Namespace, show: Callable[[LagSnapshot], None]) -> int:
    from moldau.lag.evaluation.rules import Status

    snapshot = await monitor.observe()
    if options.window is not None:
        snapshot = await _observe_window(monitor, snapshot.time_ms)
    if options.group and not snapshot.groups:
        raise ToolError(f"No group matches {', '.join(options.group)}.")
    show(snapshot)
    if snapshot.status is Status.OK:
        return int(any(each.error for each in snapshot.groups.values()))
    return _WARN if snapshot.status is Status.WARN else _ERR


async def _observe_window(monitor: LagMonitor, begin_ms: int) -> LagSnapshot:
    """Observe a whole window; rounds may fail, but not for as long as a window."""
    from moldau.base.errors import KafkaError

    now, window = asyncio.get_running_loop().time, monitor.rules.window_ms / 1000
    succeeded = now()
    while monitor.snapshot.time_ms - begin_ms < monitor.rules.window_ms:
        await asyncio.sleep(monitor.rules.interval_ms / 1000)
        try:
            await monitor.observe()
            succeeded = now()
        except KafkaError:
            if now() - succeeded > window:
                raise
    return monitor.snapshot


async def _watch(
    monitor: LagMonitor, options: argparse.Namespace, show: Callable[[LagSnapshot], None]
) -> int:
    await monitor.start()
    failed = asyncio.create_task(monitor.failed())
    show(monitor.snapshot)
    while not failed.done():
        ended = asyncio.create_task(monitor.next_round())
        await asyncio.wait([failed, ended], return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            show(ended.result())
    raise ToolError(failed.result())


def _json(snapshot: LagSnapshot) -> None:
    from moldau.lag.documents import snapshot_document

    print(json.dumps(snapshot_document(snapshot)), flush=True)


def _tables(options: argparse.Namespace) -> Callable[[LagSnapshot], None]:
    from moldau.cli.moldau.lag.table import new_console, render

    console = new_console()

    def show(snapshot: LagSnapshot) -> None:
        if console.is_terminal and not options.once:
            console.clear()
        console.print(render(snapshot, partitions=options.partitions or bool(options.group)))

    return show


if __name__ == "__main__":
    sys.exit(main())
