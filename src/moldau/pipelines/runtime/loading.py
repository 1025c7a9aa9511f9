"""Files as pipelines: YAML definitions, Python files, scripts in SQL.

A Python file may have functions with `@pipeline`, objects of `Pipeline`, a plain function `pipeline(spark)`,
and applications of `moldau.pipelines.streams`, at the top of the module; all of them become pipelines.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from moldau.pipelines.runtime.definition import NAME, BadDefinition, Definition, no_name
from moldau.pipelines.runtime.outputs import start_definition
from moldau.pipelines.runtime.python_pipeline import Context, Pipeline, Runnable
from moldau.pipelines.runtime.steps import load_file
from moldau.pipelines.runtime.yaml.definitions import read_definitions

if TYPE_CHECKING:
    from moldau.pipelines.sql.engine import SqlEngine

KINDS = (".yaml", ".yml", ".py", ".sql")


@dataclass(frozen=True, slots=True)
class Defined:
    """A pipeline from YAML."""

    definition: Definition

    @property
    def name(self) -> str:
        return self.definition.name

    def start(self, spark: SparkSession, context: Context) -> list[StreamingQuery]:
        servers = self.definition.bootstrap_servers or context.bootstrap_servers
        return start_definition(spark, self.definition, servers, context.checkpoints)

    def close(self) -> None:
        """Nothing but queries was started."""


class Application:
    """An application of streams in a Python file; it starts once only, so the file makes it each time."""

    def __init__(self, name: str, file: Path, variable: str) -> None:
        self.name = name
        self._file = file
        self._variable = variable
        self._running: Any = None

    def start(self, spark: SparkSession, context: Context) -> list[StreamingQuery]:
        self._running = getattr(load_file(self._file), self._variable)
        self._running.start()
        queries: list[StreamingQuery] = self._running.queries
        return queries

    def close(self) -> None:
        if self._running is not None:
            self._running.close()
            self._running = None


class Script:
    """A file of SQL statements, whose persistent queries run as long as the pipeline.

    Its definitions are kept in a catalog of its own, so a script that has been run only has its queries
    started again. One that was changed is run again: `CREATE OR REPLACE` is what it needs then.
    """

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self._file = file
        self._engine: SqlEngine | None = None

    def start(self, spark: SparkSession, context: Context) -> list[StreamingQuery]:
        from moldau.pipelines.sql import SqlEngine, SqlError

        text = self._file.read_text()
        done = Path(context.checkpoints) / "script.sql"
        catalog = f"_moldau_sql_{self.name}"
        self._engine = SqlEngine(
            spark, context.bootstrap_servers, state_dir=done.parent, catalog_topic=catalog, follow=False
        )
        try:
            if not done.exists() or done.read_text() != text:
                for _ in self._engine.execute(text):
                    pass
                done.parent.mkdir(parents=True, exist_ok=True)
                done.write_text(text)
        except SqlError as wrong:
            raise BadDefinition(f"{self._file}: {wrong}") from wrong
        return list(self._engine.spark.streams.active)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """The pipelines of some files, and the settings of the session that they ask for."""

    pipelines: Mapping[str, Runnable]
    files: Mapping[str, Path]
    config: Mapping[str, str]


def load(files: Sequence[Path], *, trigger: Mapping[str, Any] | None = None) -> Loaded:
    """All pipelines of these files; a `trigger` takes the place of theirs."""
    pipelines: dict[str, Runnable] = {}
    places: dict[str, Path] = {}
    config: dict[str, str] = {}
    for file in files:
        for each in _of(file, trigger):
            if not NAME.fullmatch(each.name):
                raise BadDefinition(f"{file}: {no_name(each.name)}")
            if each.name in pipelines:
                raise BadDefinition(f"{file}: there is a pipeline {each.name} in {places[each.name]} already")
            pipelines[each.name] = each
            places[each.name] = file
            if isinstance(each, Defined):
                config.update(each.definition.config)
    return Loaded(pipelines, places, config)


def _of(file: Path, trigger: Mapping[str, Any] | None) -> list[Runnable]:
    if not file.is_file():
        raise BadDefinition(f"{file}: there is no such file")
    if file.suffix in (".yaml", ".yml"):
        definitions = read_definitions(file)
        return [Defined(replace(each, trigger=trigger) if trigger else each) for each in definitions]
    if file.suffix == ".py":
        return _of_module(file, trigger)
    if file.suffix == ".sql":
        _refuse_to_end(file, trigger, "the queries of SQL")
        return [Script(file.stem, file)]
    raise BadDefinition(f"{file}: pipelines are in files that end with {', '.join(KINDS)}")


def _refuse_to_end(file: Path, trigger: Mapping[str, Any] | None, what: str) -> None:
    """Rather than run for ever where somebody waits for the end."""
    if trigger is not None and trigger.get("availableNow"):
        raise BadDefinition(f"{file}: {what} run until they are stopped: leave --available-now out")


def _of_module(file: Path, trigger: Mapping[str, Any] | None) -> list[Runnable]:
    module = load_file(file)
    found: list[Runnable] = []
    for variable, value in vars(module).items():
        if isinstance(value, Pipeline):
            found.append(replace(value, trigger_of_run=trigger))
        elif variable == "pipeline" and inspect.isfunction(value) and value.__module__ == module.__name__:
            found.append(Pipeline(file.stem, value, trigger_of_run=trigger))
        elif type(value).__name__ == "KafkaStreams":
            _refuse_to_end(file, trigger, "applications of streams")
            found.append(Application(value.settings.application_id, file, variable))
    if not found:
        raise BadDefinition(
            f"{file}: there is no pipeline in it: a function with @pipeline, a function pipeline(spark), or "
            "an application of moldau.pipelines.streams"
        )
    return found
