"""`moldau pipeline`: run pipelines from files, see what they do, stop them."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from moldau.cli.shared.tool import DEFAULT_BOOTSTRAP, ToolError

if TYPE_CHECKING:
    from moldau.pipelines.runtime.state import StateFolder, Status

app = typer.Typer(
    help="Run data pipelines on Spark, from YAML, Python and SQL files.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_STOP_PATIENCE_S = 120.0

StateDir = Annotated[
    Path, typer.Option("--state-dir", metavar="FOLDER", help="Where the state of pipelines lies.")
]
#: Not in `data`, where `moldau dev` has its partitions: a broker wants its folder for itself.
_STATE = Path("state/pipelines")


def _folder(state_dir: Path) -> StateFolder:
    from moldau.pipelines.runtime.state import StateFolder

    return StateFolder(state_dir)


def _config(words: list[str] | None) -> dict[str, str]:
    pairs = [word.partition("=") for word in words or ()]
    wrong = next((name for name, equals, _ in pairs if not equals), None)
    if wrong is not None:
        raise ToolError(f"--conf takes NAME=VALUE, and '{wrong}' has no '='")
    return {name: value for name, _, value in pairs}


@app.command()
def run(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="YAML, Python or SQL files.")],
    bootstrap_server: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The cluster, where a file names none.")
    ] = DEFAULT_BOOTSTRAP,
    state_dir: StateDir = _STATE,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where Spark runs: local[2], spark://…, k8s://…, yarn, sc://…",
            show_default="in this machine, on all cores",
        ),
    ] = None,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Process what is there, and end.")
    ] = False,
    metrics_port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Serve metrics for Prometheus; 0 for a free port.")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of Spark; may be repeated.")
    ] = None,
    tries: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="After so many failures in a row, give up.")
    ] = 8,
    connector: Annotated[
        str, typer.Option(metavar="NAME", help="moldau, or official for Spark's own connector.")
    ] = "moldau",
    quick_start: Annotated[
        bool, typer.Option("--quick-start", help="Start sooner and run slower: for development.")
    ] = False,
) -> None:
    """Run the pipelines of these files until Ctrl-C, restarting what fails."""
    from moldau.cli.moldau.commands import _exit_with

    def work() -> int:
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
        )
        return Supervisor(settings, print).run()

    _exit_with(work)


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="YAML files.")],
) -> None:
    """Say whether YAML files define pipelines, without running them."""
    from moldau.cli.moldau.commands import _exit_with

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

    _exit_with(work)


@app.command("list")
def list_pipelines(state_dir: StateDir = _STATE) -> None:
    """Show all pipelines of a state folder."""
    from moldau.cli.moldau.pipeline.views import table

    folder = _folder(state_dir)
    found = [status for name in folder.names() if (status := folder.read(name)) is not None]
    if not found:
        print(f"There is no pipeline in {state_dir}; `moldau pipeline run FILE` starts one")
        return
    Console(highlight=False, soft_wrap=True).print(table(found))


@app.command()
def status(
    name: Annotated[str, typer.Argument(help="The pipeline.")],
    state_dir: StateDir = _STATE,
    json_output: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """Show what is known of a pipeline."""
    import json
    from dataclasses import asdict

    from moldau.cli.moldau.commands import _exit_with
    from moldau.cli.moldau.pipeline.views import details

    def work() -> int:
        found = _found(_folder(state_dir), name)
        if json_output:
            print(json.dumps(asdict(found), indent=2))
        else:
            print("\n".join(details(found, _folder(state_dir).log_of(found.run))))
        return 0 if found.state in ("starting", "running", "finished", "stopped", "waiting") else 1

    _exit_with(work)


def _found(folder: StateFolder, name: str) -> Status:
    found = folder.read(name)
    if found is None:
        known = ", ".join(folder.names()) or "none"
        raise ToolError(f"There is no pipeline {name} in {folder.folder}; there are: {known}")
    return found


@app.command()
def stop(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The pipelines.")],
    state_dir: StateDir = _STATE,
) -> None:
    """Stop pipelines; others of the same run go on. A batch under way is done again at the next start."""
    from moldau.cli.moldau.commands import _exit_with

    def work() -> int:
        folder = _folder(state_dir)
        for name in names:
            found = _found(folder, name)
            if not folder.is_alive(found.run):
                raise ToolError(f"The pipeline {name} does not run")
            folder.ask_to_stop(name)
        for name in names:
            _wait_until_stopped(folder, name)
            print(f"{name} is stopped")
        return 0

    _exit_with(work)


def _wait_until_stopped(folder: StateFolder, name: str) -> None:
    from moldau.pipelines.runtime.state import ENDED

    deadline = time.monotonic() + _STOP_PATIENCE_S
    while _found(folder, name).state not in (*ENDED, "dead"):
        if time.monotonic() > deadline:
            raise ToolError(f"The pipeline {name} has not stopped within {_STOP_PATIENCE_S:g} s")
        time.sleep(0.1)


@app.command()
def logs(
    name: Annotated[str, typer.Argument(help="The pipeline.")],
    state_dir: StateDir = _STATE,
    lines: Annotated[int, typer.Option("--lines", "-n", metavar="NUMBER", help="How many.")] = 50,
) -> None:
    """Show the end of the log of a pipeline's driver."""
    from moldau.cli.moldau.commands import _exit_with

    def work() -> int:
        folder = _folder(state_dir)
        log = folder.log_of(_found(folder, name).run)
        if not log.exists():
            raise ToolError(f"The log {log} is not there any more")
        print("\n".join(log.read_text(errors="replace").splitlines()[-lines:]))
        return 0

    _exit_with(work)
