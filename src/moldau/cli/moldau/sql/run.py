"""Running the statements of `moldau sql`: from a prompt, the command line (`-e`), a file (`-f`) or stdin.

Spark starts in a background thread while the user types the first statement. (Started from the main thread,
PySpark would install its own handler for Ctrl-C, which cancels the jobs of all queries, not only of the push
query that is shown.) Only that thread imports PySpark: the circular imports inside it fail when two threads
import it at once.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.cli.moldau.sql.output import printer
from moldau.cli.moldau.sql.shell import HELP, ends, prompt_session
from moldau.cli.shared.connection import load_client_config
from moldau.cli.shared.tool import ToolError, explain, warn
from moldau.pipelines.spark.java import JavaMissing
from moldau.pipelines.sql.errors import SqlError
from moldau.pipelines.sql.state_dir import default_state_dir

if TYPE_CHECKING:
    from moldau.pipelines.sql.catalog.catalog import Catalog
    from moldau.pipelines.sql.engine import SqlEngine


@dataclass(frozen=True, slots=True)
class SqlOptions:
    bootstrap_server: str
    statements: str | None = None
    file: str | None = None
    output: str = "table"
    master: str | None = None
    state_dir: str | None = None
    command_config: str | None = None
    keep_running: bool = False


def run_sql(options: SqlOptions) -> int:
    """Run statements or the shell and return the exit code."""
    script = _script(options)
    opening = _open_in_background(options)
    try:
        if script is None:
            return _shell(opening, options)
        return _run_script(opening, script, options)
    finally:
        if opening.done() and opening.exception() is None:
            opening.result().close()


def _script(options: SqlOptions) -> str | None:
    """Return the statements to run; None for the shell."""
    if options.statements is not None:
        return options.statements
    if options.file is not None:
        try:
            return Path(options.file).read_text()
        except OSError as error:
            raise ToolError(f"Unable to read file {options.file}: {error.strerror}") from error
    return None if sys.stdin.isatty() else sys.stdin.read()


def _open_in_background(options: SqlOptions) -> Future[SqlEngine]:
    pool = ThreadPoolExecutor(1, thread_name_prefix="moldau-sql-start")
    opening = pool.submit(_open, options)
    pool.shutdown(wait=False)
    return opening


def _open(options: SqlOptions) -> SqlEngine:
    from moldau.client import AdminClient
    from moldau.client.wire.settings import ClientSettings

    config = load_client_config(options.command_config)
    config.pop("bootstrap.servers", None)
    # Report a wrong address before spending seconds on the start of Spark.
    settings = ClientSettings.from_properties({**config, "bootstrap.servers": options.bootstrap_server})
    with AdminClient(settings) as admin:
        admin.describe_cluster()
    from moldau import pipelines
    from moldau.pipelines.spark.session import LOCAL_MASTER
    from moldau.pipelines.sql.engine import SqlEngine

    # Spark logs errors in statements; they are reported as the error of the statement instead.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    spark = pipelines.session("moldau sql", master=options.master or LOCAL_MASTER, quick_start=True)
    if hasattr(spark, "_jsparkSession"):
        spark.sparkContext.setLogLevel("OFF")
    return SqlEngine(spark, options.bootstrap_server, state_dir=options.state_dir, config=config)


def _opened(opening: Future[SqlEngine]) -> SqlEngine:
    try:
        return opening.result()
    except KafkaError as error:
        raise ToolError(explain(error)) from error
    except (JavaMissing, ModuleNotFoundError) as error:
        raise ToolError(str(error)) from error


def _run_script(opening: Future[SqlEngine], script: str, options: SqlOptions) -> int:
    engine = _opened(opening)
    if not _run(engine, script, printer(options.output), options.file):
        warn("The statements before it were run, those after it were not.")
        return 1
    if options.keep_running:
        _wait_for_interrupt()
    else:
        engine.catch_up()
    return 0


def _wait_for_interrupt() -> None:
    warn("Persistent queries keep running until Ctrl-C.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


def _run(engine: SqlEngine, text: str, show: Callable[..., None], file: str | None = None) -> bool:
    """Run statements and show their results; return whether all of them succeeded."""
    try:
        for result in engine.execute(text):
            show(result)
    except SqlError as error:
        warn(str(error if file is None else error.of_file(file)))
        return False
    except KafkaError as error:
        warn(explain(error))
        return False
    return True


def _shell(opening: Future[SqlEngine], options: SqlOptions) -> int:
    folder = Path(options.state_dir) if options.state_dir else default_state_dir()

    def catalog() -> Catalog | None:
        ready = opening.done() and opening.exception() is None
        return opening.result().catalog if ready else None

    prompt = prompt_session(folder / "history", catalog)
    print(f"SQL over the topics of {options.bootstrap_server}. Type help for help, exit to exit.")
    show = printer(options.output)
    while True:
        try:
            text = prompt.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0
        if ends(text):
            return 0
        if text.strip().rstrip(";").lower() == "help":
            print(HELP)
        elif text.strip():
            _run_at_prompt(opening, text, show)


def _run_at_prompt(opening: Future[SqlEngine], text: str, show: Callable[..., None]) -> None:
    try:
        if not opening.done():
            print("Spark is still starting …")
        _run(_opened(opening), text, show)
    except KeyboardInterrupt:
        # Ctrl-C stops the query that is shown, not the shell.
        print()
