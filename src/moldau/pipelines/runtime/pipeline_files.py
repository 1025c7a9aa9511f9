"""Load pipelines from files: YAML definitions, Python files, SQL scripts.

A Python file may have functions with `@pipeline`, `Pipeline` objects, a plain function `pipeline(spark)` and
`KafkaStreams` applications at module level; each of them is a pipeline.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from moldau.pipelines.runtime.definition import NAME, BadDefinition, Definition, invalid_name
from moldau.pipelines.runtime.outputs import start_definition
from moldau.pipelines.runtime.python_pipeline import Context, Pipeline, Runnable
from moldau.pipelines.runtime.steps import load_file
from moldau.pipelines.runtime.yaml.definitions import read_definitions

if TYPE_CHECKING:
    from moldau.pipelines.sql.engine import SqlEngine

KINDS = (".yaml", ".yml", ".py", ".sql")


@dataclass(frozen=True, slots=True)
class Defined:
    """A pipeline defined in YAML."""

    definition: Definition

    @property
    def name(self) -> str:
        return self.definition.name

    def start(self, spark: SparkSession, context: Context) -> list[StreamingQuery]:
        servers = self.definition.bootstrap_servers or context.bootstrap_servers
        return start_definition(spark, self.definition, servers, context.checkpoints, context.kafka_options)

    def close(self) -> None:
        """There is nothing but queries to close."""


class Application:
    """A `KafkaStreams` application of a Python file. It can start only once, so the file is loaded each
    time."""

    def __init__(self, name: str, file: Path, variable: str) -> None:
        self.name = name
        self._file = file
        self._variable = variable
        self._running: Any = None

    @property
    def definition(self) -> None:
        return None

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

    The script has its own catalog: the next start of an unchanged script only starts its queries. A changed
    script is executed again, so it needs `CREATE OR REPLACE`.
    """

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self._file = file
        self._engine: SqlEngine | None = None

    @property
    def definition(self) -> None:
        return None

    def start(self, spark: SparkSession, context: Context) -> list[StreamingQuery]:
        from moldau.pipelines.sql import SqlEngine, SqlError

        text = self._file.read_text()
        done = Path(context.checkpoints) / "script.sql"
        catalog = f"_moldau_sql_{self.name}"
        self._engine = SqlEngine(
            spark,
            context.bootstrap_servers,
            state_dir=done.parent,
            config=context.client,
            catalog_topic=catalog,
            follow=False,
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
    """The pipelines of files by name, their files, and the Spark settings they require."""

    pipelines: Mapping[str, Runnable]
    files: Mapping[str, Path]
    config: Mapping[str, str]


def load(files: Sequence[Path], *, trigger: Mapping[str, Any] | None = None) -> Loaded:
    """Return all pipelines of these files; `trigger` overrides their triggers."""
    pipelines: dict[str, Runnable] = {}
    origins: dict[str, Path] = {}
    config: dict[str, str] = {}
    for file in files:
        for each in _load_file(file, trigger):
            if not NAME.fullmatch(each.name):
                raise BadDefinition(f"{file}: {invalid_name(each.name)}")
            if each.name in pipelines:
                raise BadDefinition(
                    f"{file}: the pipeline {each.name} is already defined in {origins[each.name]}"
                )
            pipelines[each.name] = each
            origins[each.name] = file
            if isinstance(each, Defined):
                config.update(each.definition.config)
    return Loaded(pipelines, origins, config)


def _load_file(file: Path, trigger: Mapping[str, Any] | None) -> list[Runnable]:
    if not file.is_file():
        raise BadDefinition(f"{file}: no such file")
    if file.suffix in (".yaml", ".yml"):
        definitions = read_definitions(file)
        return [Defined(replace(each, trigger=trigger) if trigger else each) for each in definitions]
    if file.suffix == ".py":
        return _load_module(file, trigger)
    if file.suffix == ".sql":
        _refuse_available_now(file, trigger, "SQL queries")
        return [Script(file.stem, file)]
    raise BadDefinition(f"{file}: the file name of a pipeline must end with {', '.join(KINDS)}")


def _refuse_available_now(file: Path, trigger: Mapping[str, Any] | None, what: str) -> None:
    """Refuse `--available-now` for pipelines that never end by themselves."""
    if trigger is not None and trigger.get("availableNow"):
        raise BadDefinition(f"{file}: {what} run until they are stopped; omit --available-now")


def _load_module(file: Path, trigger: Mapping[str, Any] | None) -> list[Runnable]:
    module = load_file(file)
    found: list[Runnable] = []
    for variable, value in vars(module).items():
        if isinstance(value, Pipeline):
            found.append(replace(value, trigger_of_run=trigger))
        elif variable == "pipeline" and inspect.isfunction(value) and value.__module__ == module.__name__:
            found.append(Pipeline(file.stem, value, trigger_of_run=trigger))
        elif type(value).__name__ == "KafkaStreams":
            _refuse_available_now(file, trigger, "streams applications")
            found.append(Application(value.settings.application_id, file, variable))
    if not found:
        raise BadDefinition(
            f"{file}: no pipeline found; define a function with @pipeline, a function pipeline(spark), or a "
            "KafkaStreams application"
        )
    return found
