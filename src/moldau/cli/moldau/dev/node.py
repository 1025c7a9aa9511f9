"""`moldau dev` with one broker: a node in this process, formatted at its first start."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from moldau import __version__
from moldau.base.json_log import TEXT, configure_logging
from moldau.cli.moldau.dev.security import announce_clients, dev_security
from moldau.cli.moldau.dev.services import DevServices
from moldau.cli.shared.process import overrides
from moldau.cli.shared.tool import ToolError
from moldau.local.plan import CONTROLLER_LISTENER, single_node_properties

DEFAULT_PORT = 9092


def dev_node(
    *,
    port: int = DEFAULT_PORT,
    data: str = "data",
    settings: Sequence[str] = (),
    announce: Callable[[str], None] = print,
    verbose: bool = False,
    secure: bool = False,
    services: DevServices | None = None,
    metrics_port: int | None = None,
    log_format: str = TEXT,
) -> int:
    """Run the node until Ctrl-C or SIGTERM and return the exit code."""
    from moldau.server.run import StartError, format_if_needed, run_node
    from moldau.server.startup.format import FormatOptions

    folder = Path(data).absolute()

    def on_ready(ports: dict[str, int]) -> None:
        clients = next(number for name, number in ports.items() if name != CONTROLLER_LISTENER)
        announce(f"Moldau {__version__} is ready.")
        announce(f"  bootstrap.servers  localhost:{clients}")
        announce(f"  data               {folder}")
        if metrics_port is not None:
            announce(f"  metrics            http://localhost:{metrics_port}/metrics")
        if security is not None:
            announce_clients(security, f"localhost:{clients}", announce)
        if services is not None:
            services.start(f"localhost:{clients}", security, announce)
        announce("Press Ctrl-C to stop.")

    configure_logging(log_format, logging.INFO if verbose else logging.WARNING)
    options = FormatOptions()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        security = dev_security(folder, secure=secure)
        # A log directory contains nothing but logs.
        logs = folder if security is None else folder / "logs"
        properties = single_node_properties("localhost", port, 0, str(logs))
        if security is not None:
            properties = security.node_properties(properties)
            options = FormatOptions(scram_credentials=security.scram_credentials())
        if metrics_port is not None:
            properties["metrics.port"] = str(metrics_port)
        properties |= overrides(settings)
        format_if_needed(properties, options)
        code = run_node(properties, on_ready=on_ready)
    except StartError as error:
        raise ToolError(_with_remedy(error, port, data)) from error
    except OSError as error:
        raise ToolError(f"Cannot use the data folder {folder}: {error.strerror}") from error
    # A terminal prints ^C at the cursor.
    announce("\nStopped." if sys.stdout.isatty() else "Stopped.")
    return code


def _with_remedy(error: Exception, port: int, data: str) -> str:
    from moldau.network.listener import ListenError

    if not isinstance(error.__cause__, ListenError) or f":{port}:" not in str(error):
        return str(error)
    return (
        f"Port {port} is in use. Is another broker running? Stop it, or choose another port: "
        f"{_own_name()} dev --port {port + 10} --data {data}-{port + 10}"
    )


def _own_name() -> str:
    """Return the command that runs `moldau` from here; it may not be on the path."""
    if shutil.which("moldau") is not None:
        return "moldau"
    return "python -m moldau" if sys.argv[0].endswith("__main__.py") else sys.argv[0]
