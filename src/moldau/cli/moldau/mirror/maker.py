"""`connect-mirror-maker` and `kafka-mirror-maker`: mirror the flows of a properties file until stopped."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.base.json_log import configure_logging
from moldau.cli.shared.arguments import ToolParser, refuse_together
from moldau.cli.shared.connection import load_config
from moldau.cli.shared.process import add_log_format
from moldau.cli.shared.tool import ToolError, run_tool, warn

if TYPE_CHECKING:
    from moldau.pipelines.mirror.config.properties import MirrorConfig
    from moldau.pipelines.mirror.run.service import MirrorService, TaskHost


def main(argv: Sequence[str] | None = None) -> int:
    """Run `connect-mirror-maker` and return the exit code."""
    return run_tool(lambda: _parser("connect-mirror-maker"), _execute, argv)


def kafka_main(argv: Sequence[str] | None = None) -> int:
    """Run `kafka-mirror-maker` and return the exit code."""
    return run_tool(lambda: _parser("kafka-mirror-maker"), _execute, argv)


def _parser(name: str) -> ToolParser:
    parser = ToolParser(name)
    parser.add_argument("file", metavar="MM2.PROPERTIES", help="Properties file with clusters and flows.")
    parser.add_argument(
        "--clusters", metavar="ALIAS", nargs="+", default=[], help="Only flows to these clusters."
    )
    parser.flag("--local", "Copy in this process, without Spark.")
    parser.option("--master", "MASTER", "Spark master; by default local, with a slot for each of tasks.max.")
    parser.add_argument("--verbose", "-v", action="store_true", help="Log what the mirror does.")
    add_log_format(parser)
    return parser


def _execute(options: argparse.Namespace) -> int:
    from moldau.base.clock import SystemClock
    from moldau.pipelines.mirror.config.properties import read_config
    from moldau.pipelines.mirror.run.service import MirrorService

    refuse_together(options, "local", ["master"])
    level = logging.INFO if options.verbose else logging.WARNING
    configure_logging(options.log_format, level, sys.stderr)
    targets = [alias for each in options.clusters for alias in each.split(",") if alias]
    config = read_config(load_config(options.file), targets)
    for warning in config.warnings:
        warn(f"Warning: {warning}")
    host = _host(options, config)
    try:
        return asyncio.run(_run(MirrorService(config, host, SystemClock())))
    finally:
        host.close()


def _host(options: argparse.Namespace, config: MirrorConfig) -> TaskHost:
    if not options.local:
        return _spark_host(options, config)
    from moldau.base.clock import SystemClock
    from moldau.pipelines.mirror.run.service import LocalHost

    return LocalHost(SystemClock())


def _spark_host(options: argparse.Namespace, config: MirrorConfig) -> TaskHost:
    try:
        from moldau.pipelines.mirror.run.spark import SparkHost

        return SparkHost(config.flows, options.master)
    except ModuleNotFoundError as missing:
        if (missing.name or "moldau").partition(".")[0] == "moldau":
            raise
        raise ToolError(
            f'Mirroring on Spark needs {missing.name}: pip install "moldau[spark]", or use --local'
        ) from missing


async def _run(service: MirrorService) -> int:
    task = asyncio.ensure_future(service.run(_print_state))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return 0
    except BaseExceptionGroup as failures:
        raise _first(failures) from None
    return 0


def _print_state(flow: str, active: bool) -> None:
    print(f"Mirroring {flow}" if active else f"Standing by: another process mirrors {flow}", flush=True)


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    found = failures.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


if __name__ == "__main__":
    sys.exit(main())
