"""`moldau pipeline`: run pipelines from files, show their status and logs, stop them."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from moldau.cli.moldau.exits import exit_with
from moldau.cli.shared.connection import DEFAULT_BOOTSTRAP
from moldau.cli.shared.tool import ToolError

if TYPE_CHECKING:
    from moldau.pipelines.runtime.state import StateFolder, Status

pipeline = typer.Typer(
    help="Run data pipelines on Spark from YAML, Python and SQL files.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_STOP_TIMEOUT_S = 120.0

StateDir = Annotated[
    Path, typer.Option("--state-dir", metavar="FOLDER", help="Folder for the state of pipelines.")
]
LogFormat = Annotated[
    str, typer.Option(metavar="FORMAT", help="Log as text, or as lines of JSON (json).", show_default="text")
]
#: Not in `data`, the log directory of `moldau dev`: a broker does not accept other folders there.
_STATE = Path("state/pipelines")


def _folder(state_dir: Path) -> StateFolder:
    from moldau.pipelines.runtime.state import StateFolder

    return StateFolder(state_dir)


def _config(words: list[str] | None) -> dict[str, str]:
    pairs = [word.partition("=") for word in words or ()]
    wrong = next((name for name, equals, _ in pairs if not equals), None)
    if wrong is not None:
        raise ToolError(f"--conf takes NAME=VALUE, but '{wrong}' has no '='")
    return {name: value for name, _, value in pairs}


@pipeline.command()
def run(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="YAML, Python or SQL files.")],
    bootstrap_server: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The cluster, for files that name none.")
    ] = DEFAULT_BOOTSTRAP,
    command_config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Properties file of the client: security, timeouts."),
    ] = None,
    state_dir: StateDir = _STATE,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Spark master: local[2], spark://…, k8s://…, yarn, sc://…",
            show_default="on this machine, on all cores",
        ),
    ] = None,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Process the records that exist now, then exit.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Serve Prometheus metrics on this port; 0 takes any free port."),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A Spark configuration. May be repeated."),
    ] = None,
    tries: Annotated[
        int,
        typer.Option(metavar="NUMBER", min=1, help="Give up after this many consecutive failures."),
    ] = 8,
    connector: Annotated[
        str, typer.Option(metavar="NAME", help="Kafka connector: moldau, or official for Spark's own.")
    ] = "moldau",
    quick_start: Annotated[
        bool,
        typer.Option("--quick-start", help="Start sooner at the cost of throughput, for development."),
    ] = False,
    log_format: LogFormat = "text",
) -> None:
    """Run the pipelines of these files until Ctrl-C, and restart those that fail."""

    def work() -> int:
        from moldau.cli.shared.process import checked_format
        from moldau.pipelines.runtime.driver import RunSettings
        from moldau.pipelines.runtime.supervisor import Supervisor

        settings = RunSettings(
            files=files,
            run=uuid.uuid4().hex[:12],
            supervisor=os.getpid(),
            state_dir=str(state_dir),
            bootstrap_servers=bootstrap_server,
            master=master,
            connector=connector,
            quick_start=quick_start,
            trigger="available_now" if available_now else None,
            metrics_port=metrics_port,
            config=_config(conf),
            tries=tries,
            command_config=command_config,
            log_format=checked_format(log_format),
        )
        return Supervisor(settings, print).run()

    exit_with(work)


@pipeline.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="YAML files.")],
) -> None:
    """Validate YAML files without running their pipelines."""

    def work() -> int:
        from moldau.pipelines.runtime.definition import BadDefinition
        from moldau.pipelines.runtime.yaml.definitions import read_definitions

        try:
            for file in files:
                for definition in read_definitions(Path(file)):
                    print(f"{file}: {definition.name} is a pipeline")
        except BadDefinition as wrong:
            raise ToolError(str(wrong)) from wrong
        return 0

    exit_with(work)


@pipeline.command("list")
def list_pipelines(state_dir: StateDir = _STATE) -> None:
    """List the pipelines of a state folder."""
    from moldau.cli.moldau.pipeline.views import table

    folder = _folder(state_dir)
    found = [status for name in folder.names() if (status := folder.read(name)) is not None]
    if not found:
        print(f"There is no pipeline in {state_dir}; `moldau pipeline run FILE` starts one")
        return
    Console(highlight=False, soft_wrap=True).print(table(found))


@pipeline.command()
def status(
    name: Annotated[str, typer.Argument(help="Name of the pipeline.")],
    state_dir: StateDir = _STATE,
    json_output: Annotated[bool, typer.Option("--json", help="Print all details as JSON.")] = False,
) -> None:
    """Show the status of a pipeline and of its queries.

    Exits with 1 if the pipeline has failed.
    """
    import json
    from dataclasses import asdict

    from moldau.cli.moldau.pipeline.views import details

    def work() -> int:
        found = _status_of(_folder(state_dir), name)
        if json_output:
            print(json.dumps(asdict(found), indent=2))
        else:
            print("\n".join(details(found, _folder(state_dir).log_of(found.run))))
        return 0 if found.state in ("starting", "running", "finished", "stopped", "waiting") else 1

    exit_with(work)


def _status_of(folder: StateFolder, name: str) -> Status:
    found = folder.read(name)
    if found is None:
        known = ", ".join(folder.names()) or "none"
        raise ToolError(f"There is no pipeline {name} in {folder.folder}; there are: {known}")
    return found


@pipeline.command()
def stop(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names of the pipelines.")],
    state_dir: StateDir = _STATE,
) -> None:
    """Stop pipelines; others of the same run keep running.

    A batch in progress is repeated at the next start.
    """

    def work() -> int:
        folder = _folder(state_dir)
        for name in names:
            found = _status_of(folder, name)
            if not folder.is_alive(found.run):
                raise ToolError(f"The pipeline {name} is not running")
            folder.request_stop(name)
        for name in names:
            _wait_until_stopped(folder, name)
            print(f"{name} is stopped")
        return 0

    exit_with(work)


def _wait_until_stopped(folder: StateFolder, name: str) -> None:
    from moldau.pipelines.runtime.state import ENDED

    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while _status_of(folder, name).state not in (*ENDED, "dead"):
        if time.monotonic() > deadline:
            raise ToolError(f"The pipeline {name} has not stopped within {_STOP_TIMEOUT_S:g} s")
        time.sleep(0.1)


@pipeline.command()
def logs(
    name: Annotated[str, typer.Argument(help="Name of the pipeline.")],
    state_dir: StateDir = _STATE,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="NUMBER", help="Number of lines to show.")
    ] = 50,
) -> None:
    """Show the last lines of the log of a pipeline's driver."""

    def work() -> int:
        folder = _folder(state_dir)
        log = folder.log_of(_status_of(folder, name).run)
        if not log.exists():
            raise ToolError(f"The log {log} no longer exists")
        print("\n".join(log.read_text(errors="replace").splitlines()[-lines:]))
        return 0

    exit_with(work)
