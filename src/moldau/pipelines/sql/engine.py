"""`SqlEngine`: executes statements in a Spark session of its own, cloned from the given one.

Definitions are stored in a topic of the cluster (`catalog_topic`), checkpoints of persistent queries in a
directory (`state_dir`). Every second a thread reads new definitions, starts the queries that other engines
have defined, and restarts failed queries.
"""

from __future__ import annotations

import logging
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
from moldau.pipelines.sql.parse.dialect import split_statements
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
from moldau.pipelines.sql.results import Message, Result
from moldau.pipelines.sql.run.context import Context
from moldau.pipelines.sql.run.definitions import create_as, create_source, insert_select
from moldau.pipelines.sql.run.drop_terminate import drop, pause, terminate
from moldau.pipelines.sql.run.frames import Frames
from moldau.pipelines.sql.run.insert_values import insert_values
from moldau.pipelines.sql.run.lookups import Lookups
from moldau.pipelines.sql.run.persistent import PersistentQueries
from moldau.pipelines.sql.run.print_topic import print_topic
from moldau.pipelines.sql.run.reports import describe, explain, show
from moldau.pipelines.sql.run.select import select
from moldau.pipelines.sql.state_dir import default_state_dir

logger = logging.getLogger(__name__)

_REFRESH_INTERVAL_S = 1.0


class SqlEngine:
    """Executes SQL statements, and runs the persistent queries of a catalog."""

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
        """Open the catalog. `settings` are the initial values of what SET changes; `config` holds further
        configs of the client, such as security; with `follow=False` queries are only checked when a statement
        is executed."""
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
        """The session of the engine's views and queries."""
        return self._context.spark

    @property
    def catalog(self) -> Catalog:
        return self._context.catalog

    @property
    def catalog_topic(self) -> str:
        """The topic of the catalog; the topics of late records start with its name."""
        return self._context.store.topic

    def execute(self, text: str) -> Iterator[Result]:
        """Execute the statements of a text one after the other, up to the first error."""
        for tokens in split_statements(text):
            statement = parse_tokens(text, tokens)
            if isinstance(statement, RunScript):
                yield from self._run_script(statement)
                continue
            place = Place(text, tokens[0].start, tokens[-1].end + 1)
            with self._active(), _errors_at(place):
                self._context.store.refresh()
                result = self._execute(statement, text[place.start : place.end])
            yield result

    def _run_script(self, statement: RunScript) -> Iterator[Result]:
        try:
            script = Path(statement.path).read_text()
        except OSError as error:
            raise SqlError(f"Cannot read the script: {error}", statement.place) from error
        try:
            yield from self.execute(script)
        except SqlError as error:
            raise error.of_file(statement.path) from error

    def _execute(self, statement: Statement, text: str) -> Result:
        context = self._context
        match statement:
            case Select():
                return select(context, statement)
            case CreateSource():
                return create_source(context, statement, text)
            case CreateAs():
                return create_as(context, statement, text)
            case InsertSelect():
                return insert_select(context, statement, text)
            case InsertValues():
                return insert_values(context, statement)
            case Show():
                return show(context, statement)
            case Describe():
                return describe(context, statement)
            case Explain():
                return explain(context, statement)
            case Terminate():
                return terminate(context, statement)
            case Pause():
                return pause(context, statement)
            case Drop():
                return drop(context, statement)
            case Print():
                return print_topic(context, statement)
            case SetProperty():
                return self._set(statement)
        raise SqlError("This statement is not supported here")

    def _set(self, statement: SetProperty) -> Result:
        return Message(self._context.settings.set(statement.name, statement.value))

    def refresh(self) -> None:
        """Read the definitions of other engines, and start and stop persistent queries accordingly."""
        with self._active():
            self._context.store.refresh()
            self._context.queries.reconcile(self.catalog)

    @contextmanager
    def _active(self) -> Iterator[None]:
        """Hold the lock, and make the engine's session active: Spark looks up formats in the active
        session."""
        with self._lock:
            activate(self._context.spark)
            try:
                yield
            finally:
                activate(self._given)

    def catch_up(self) -> None:
        """Wait until the persistent queries have processed all available records."""
        self._context.queries.catch_up()

    def _follow(self) -> None:
        while not self._closing.wait(_REFRESH_INTERVAL_S):
            try:
                self.refresh()
            except KafkaError as error:
                logger.warning("Cannot read the catalog %s; retrying: %s", self.catalog_topic, error)

    def close(self) -> None:
        """Stop the queries that run here; the next engine resumes them."""
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
def _errors_at(place: Place) -> Iterator[None]:
    """Add the place of the statement to errors that have no place of their own."""
    try:
        yield
    except SqlError as error:
        raise error.at(place) from error
    except KafkaError as error:
        if error.code is not ErrorCode.INVALID_CONFIG:
            raise
        raise SqlError(error.message or str(error), place) from error


def _own_session(spark: SparkSession) -> SparkSession:
    """Create a session with its own views and configs. As in ksqlDB, an invalid cast is null and not an
    error."""
    if isinstance(spark, ClassicSession):
        # Unlike a new session, a clone knows the registered formats.
        own: SparkSession = ClassicSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    else:
        own = spark.newSession()
        register(own)
    own.conf.set("spark.sql.ansi.enabled", "false")
    own.conf.set("spark.sql.timeType.enabled", "true")
    own.conf.set("spark.sql.session.timeZone", "UTC")
    # A batch that is repeated must have the same tasks, for exactly-once delivery.
    own.conf.set("spark.sql.adaptive.enabled", "false")
    return own
