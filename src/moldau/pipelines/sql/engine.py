"""Executes statements. One engine has one Spark session of its own inside of the given one.

Definitions live in the cluster (`catalog_topic`), checkpoints of persistent queries in a folder
(`state_dir`). A thread looks every second whether there is something new in the catalog, starts queries that
others have defined, and starts again those that have failed.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.session import SparkSession as ClassicSession

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client import AdminClient
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.queries import activate
from moldau.pipelines.spark.session import register
from moldau.pipelines.sql.catalog.catalog import Catalog
from moldau.pipelines.sql.catalog.topic import TOPIC, CatalogTopic
from moldau.pipelines.sql.errors import Place, SqlError
from moldau.pipelines.sql.parse.dialect import statements as split
from moldau.pipelines.sql.parse.parser import parse_tokens
from moldau.pipelines.sql.parse.statements import (
    CreateAs,
    CreateSource,
    Describe,
    Drop,
    Explain,
    InsertSelect,
    InsertValues,
    Pause,
    Print,
    RunScript,
    Select,
    SetProperty,
    Show,
    Statement,
    Terminate,
)
from moldau.pipelines.sql.properties import Settings
from moldau.pipelines.sql.run import definitions, reports
from moldau.pipelines.sql.run import drop_terminate as ending
from moldau.pipelines.sql.run import insert_values as inserting
from moldau.pipelines.sql.run import print_topic as printing
from moldau.pipelines.sql.run import select as reading
from moldau.pipelines.sql.run.context import Context
from moldau.pipelines.sql.run.frames import Frames
from moldau.pipelines.sql.run.lookups import Lookups
from moldau.pipelines.sql.run.persistent import PersistentQueries
from moldau.pipelines.sql.run.results import Message, Result

_LOOK_S = 1.0
_log = logging.getLogger(__name__)


def default_state_dir() -> Path:
    """Where checkpoints go unless somebody says otherwise."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "moldau" / "sql"


class SqlEngine:
    def __init__(
        self,
        spark: SparkSession,
        bootstrap_servers: str,
        *,
        state_dir: str | Path | None = None,
        settings: Mapping[str, str] | None = None,
        config: Mapping[str, str] | None = None,
        catalog_topic: str = TOPIC,
        follow: bool = True,
    ) -> None:
        """`settings` are what SET changes; `config` holds further settings of the client, such as those for
        security; with `follow=False` nothing is looked after between statements."""
        client = {"bootstrap.servers": bootstrap_servers, **(config or {})}
        self._given = spark
        own = _own_session(spark)
        client_settings = ClientSettings.from_properties(client)
        admin = AdminClient(client_settings)
        self._lock = threading.RLock()
        self._closing = threading.Event()
        options = {f"kafka.{name}": value for name, value in (config or {}).items()}
        frames = Frames(own, bootstrap_servers, options)
        cluster = admin.describe_cluster().cluster_id
        folder = Path(state_dir or default_state_dir()) / str(cluster) / catalog_topic
        self._context = Context(
            spark=own,
            bootstrap_servers=bootstrap_servers,
            config=client,
            admin=admin,
            store=CatalogTopic(client, admin, catalog_topic),
            frames=frames,
            queries=PersistentQueries(frames, bootstrap_servers, folder, catalog_topic),
            lookups=Lookups(own, client_settings),
            settings=Settings(dict(settings or {})),
        )
        self.refresh()
        self._follower = threading.Thread(target=self._follow, name="moldau-sql", daemon=True)
        if follow:
            self._follower.start()

    @property
    def spark(self) -> SparkSession:
        """The session of its views and queries."""
        return self._context.spark

    @property
    def catalog(self) -> Catalog:
        return self._context.catalog

    @property
    def catalog_topic(self) -> str:
        """Where the catalog is kept; topics of late records begin with its name."""
        return self._context.store.topic

    def execute(self, text: str) -> Iterator[Result]:
        """Run the statements of a text one after the other; a mistake in one ends it there."""
        for tokens in split(text):
            statement = parse_tokens(text, tokens)
            if isinstance(statement, RunScript):
                yield from self._run_script(statement)
                continue
            place = Place(text, tokens[0].start, tokens[-1].end + 1)
            with self._working(), _told_where(place):
                self._context.store.refresh()
                result = self._execute(statement, text[place.start : place.end])
            yield result

    def _run_script(self, statement: RunScript) -> Iterator[Result]:
        try:
            script = Path(statement.path).read_text()
        except OSError as error:
            raise SqlError(f"The script cannot be read: {error}", statement.place) from error
        try:
            yield from self.execute(script)
        except SqlError as error:
            raise error.of_file(statement.path) from error

    def _execute(self, statement: Statement, text: str) -> Result:
        context = self._context
        match statement:
            case Select():
                return reading.select(context, statement)
            case CreateSource():
                return definitions.create_source(context, statement, text)
            case CreateAs():
                return definitions.create_as(context, statement, text)
            case InsertSelect():
                return definitions.insert_select(context, statement, text)
            case InsertValues():
                return inserting.insert_values(context, statement)
            case Show():
                return reports.show(context, statement)
            case Describe():
                return reports.describe(context, statement)
            case Explain():
                return reports.explain(context, statement)
            case Terminate():
                return ending.terminate(context, statement)
            case Pause():
                return ending.pause(context, statement)
            case Drop():
                return ending.drop(context, statement)
            case Print():
                return printing.print_topic(context, statement)
            case SetProperty():
                return self._set(statement)
        raise SqlError("This statement cannot be run here")

    def _set(self, statement: SetProperty) -> Result:
        return Message(self._context.settings.set(statement.name, statement.value))

    def refresh(self) -> None:
        """See what others have defined, and make the persistent queries run that should."""
        with self._working():
            self._context.store.refresh()
            self._context.queries.reconcile(self.catalog)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """One thread at a time, and the engine's session active: Spark looks for formats there."""
        with self._lock:
            activate(self._context.spark)
            try:
                yield
            finally:
                activate(self._given)

    def catch_up(self) -> None:
        """Wait until persistent queries have processed what is there."""
        self._context.queries.catch_up()

    def _follow(self) -> None:
        while not self._closing.wait(_LOOK_S):
            try:
                self.refresh()
            except KafkaError as error:
                _log.warning("The cluster cannot be asked for news: %s", error)

    def close(self) -> None:
        """Stop what runs here; the next engine goes on where it stopped."""
        self._closing.set()
        if self._follower.is_alive():
            self._follower.join()
        self._context.queries.close()
        self._context.lookups.close()
        self._context.store.close()
        self._context.admin.close()

    def __enter__(self) -> SqlEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _told_where(place: Place) -> Iterator[None]:
    """A mistake is told with its place in the text; what has none is that of the statement."""
    try:
        yield
    except SqlError as error:
        raise error.at(place) from error
    except KafkaError as error:
        if error.code is not ErrorCode.INVALID_CONFIG:
            raise
        raise SqlError(error.message or str(error), place) from error


def _own_session(spark: SparkSession) -> SparkSession:
    """A session with views and settings of its own: what does not fit is null, as in ksqlDB, and no error."""
    if isinstance(spark, ClassicSession):
        # A clone knows the formats that were registered; a new session would not.
        own: SparkSession = ClassicSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    else:
        own = spark.newSession()
        register(own)
    own.conf.set("spark.sql.ansi.enabled", "false")
    own.conf.set("spark.sql.timeType.enabled", "true")
    own.conf.set("spark.sql.session.timeZone", "UTC")
    # What a stream makes Spark compute and write has to have the same tasks when it is run again.
    own.conf.set("spark.sql.adaptive.enabled", "false")
    return own
