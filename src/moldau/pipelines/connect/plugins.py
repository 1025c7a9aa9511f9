"""Plugins by name: connectors, converters, transformations and predicates.

A plugin is found by its full Java name (`org.apache.kafka.connect.file.FileStreamSinkConnector`), its class
name (`FileStreamSinkConnector`), the class name without the kind (`FileStreamSink`), or the name of an
entry point in the group `moldau.connectors`:

    [project.entry-points."moldau.connectors"]
    numbers = "my_package:NumbersConnector"

Folders of `plugin.path` have more packages with such entry points (`plugin_path`).

Classes are imported when they are used, so a missing optional dependency concerns only its own plugin.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import moldau
from moldau.pipelines.connect import plugin_path
from moldau.pipelines.connect.converters.catalog import CONVERTERS, HEADER_CONVERTERS
from moldau.pipelines.connect.converters.interface import Converter, HeaderConverter
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.sdk import Connector, SinkConnector, SourceConnector
from moldau.pipelines.connect.transforms.catalog import PREDICATES, TRANSFORMATIONS

ENTRY_POINTS: Final = "moldau.connectors"
NO_SETTINGS: Final[Mapping[str, str]] = MappingProxyType({})
_CONNECTORS: Final = "moldau.pipelines.connect.connectors"


class PluginType(Enum):
    """The kind of a plugin; the value is the one of the REST API."""

    SINK = "sink"
    SOURCE = "source"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"


class Plugin(NamedTuple):
    name: str
    type: PluginType
    #: Module and class, or a function that returns an instance.
    target: str | Callable[[], Any]

    def create(self) -> Any:
        """Return a new instance; `ConnectError` if its class cannot be imported."""
        return self.load()() if isinstance(self.target, str) else self.target()

    def load(self) -> Any:
        """Import the class."""
        if not isinstance(self.target, str):
            return self.target
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConnectError(f"The plugin {self.name} cannot be loaded: {error}") from error

    @property
    def version(self) -> str:
        """The version: that of connectors of other packages differs from ours."""
        version = getattr(self.create(), "version", None)
        return version if isinstance(version, str) else moldau.__version__


_BUILT_IN: Final[dict[PluginType, Mapping[str, str | Callable[[], Any]]]] = {
    PluginType.SINK: {
        "org.apache.kafka.connect.file.FileStreamSinkConnector": (
            f"{_CONNECTORS}.files.sink:FileStreamSinkConnector"
        ),
        "com.mongodb.kafka.connect.MongoSinkConnector": f"{_CONNECTORS}.mongodb.sink:MongoSinkConnector",
        "com.redis.kafka.connect.RedisSinkConnector": f"{_CONNECTORS}.redis.sink:RedisSinkConnector",
        "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector": (
            f"{_CONNECTORS}.search.sink:OpensearchSinkConnector"
        ),
        "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector": (
            f"{_CONNECTORS}.search.sink:ElasticsearchSinkConnector"
        ),
        "io.confluent.connect.http.HttpSinkConnector": f"{_CONNECTORS}.http.sink:HttpSinkConnector",
        "io.confluent.connect.jdbc.JdbcSinkConnector": f"{_CONNECTORS}.jdbc.sink.connector:JdbcSinkConnector",
        "DirectorySinkConnector": f"{_CONNECTORS}.objects.connectors:DirectorySinkConnector",
        "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector": (
            f"{_CONNECTORS}.objects.connectors:AzureBlobStorageSinkConnector"
        ),
        "io.confluent.connect.gcs.GcsSinkConnector": f"{_CONNECTORS}.objects.connectors:GcsSinkConnector",
        "io.confluent.connect.s3.S3SinkConnector": f"{_CONNECTORS}.objects.connectors:S3SinkConnector",
        "moldau.connect.ClusterSinkConnector": f"{_CONNECTORS}.cluster.sink:ClusterSinkConnector",
        "delta": f"{_CONNECTORS}.lake.delta.connector:DeltaSinkConnector",
        "iceberg": f"{_CONNECTORS}.lake.iceberg.connector:IcebergSinkConnector",
        # The name in Iceberg's own distribution.
        "org.apache.iceberg.connect.IcebergSinkConnector": (
            f"{_CONNECTORS}.lake.iceberg.connector:IcebergSinkConnector"
        ),
    },
    PluginType.SOURCE: {
        "org.apache.kafka.connect.file.FileStreamSourceConnector": (
            f"{_CONNECTORS}.files.source:FileStreamSourceConnector"
        ),
        "io.debezium.connector.postgresql.PostgresConnector": (
            f"{_CONNECTORS}.cdc.connector:PostgresConnector"
        ),
        **{
            f"org.apache.kafka.connect.mirror.{name}": f"{_CONNECTORS}.cluster.connectors:{name}"
            for name in ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
        },
        "spark": f"{_CONNECTORS}.spark.source:SparkSourceConnector",
        "DirectorySourceConnector": f"{_CONNECTORS}.objects.connectors:DirectorySourceConnector",
        "io.confluent.connect.azure.blob.storage.AzureBlobStorageSourceConnector": (
            f"{_CONNECTORS}.objects.connectors:AzureBlobStorageSourceConnector"
        ),
        "io.confluent.connect.gcs.GcsSourceConnector": f"{_CONNECTORS}.objects.connectors:GcsSourceConnector",
        "io.confluent.connect.s3.source.S3SourceConnector": (
            f"{_CONNECTORS}.objects.connectors:S3SourceConnector"
        ),
        "io.confluent.kafka.connect.datagen.DatagenConnector": (
            f"{_CONNECTORS}.datagen.source:DatagenConnector"
        ),
        "com.mongodb.kafka.connect.MongoSourceConnector": (
            f"{_CONNECTORS}.mongodb.source:MongoSourceConnector"
        ),
        "com.redis.kafka.connect.RedisStreamSourceConnector": (
            f"{_CONNECTORS}.redis.streams:RedisStreamSourceConnector"
        ),
        "io.confluent.connect.http.HttpSourceConnector": f"{_CONNECTORS}.http.source:HttpSourceConnector",
        "moldau.connect.WebhookSourceConnector": f"{_CONNECTORS}.http.webhook:WebhookSourceConnector",
        "io.confluent.connect.jdbc.JdbcSourceConnector": (
            f"{_CONNECTORS}.jdbc.source.connector:JdbcSourceConnector"
        ),
    },
    PluginType.TRANSFORMATION: TRANSFORMATIONS,
    PluginType.PREDICATE: PREDICATES,
    PluginType.CONVERTER: CONVERTERS,
    PluginType.HEADER_CONVERTER: {**HEADER_CONVERTERS, **CONVERTERS},
}
_NAMES: Final = {
    target: name for table in _BUILT_IN.values() for name, target in table.items() if isinstance(target, str)
}


class UnknownPlugin(ConnectError):
    """No plugin has this name; the message lists those of its kind."""


class Plugins:
    def __init__(self, more: Iterable[Plugin] = (), worker: Mapping[str, str] = NO_SETTINGS) -> None:
        """Know the built-in plugins, those of entry points and of the worker's `plugin.path`, and `more`."""
        self._plugins = [
            Plugin(name, kind, target) for kind, table in _BUILT_IN.items() for name, target in table.items()
        ]
        self._plugins += _installed(
            [*entry_points(group=ENTRY_POINTS), *plugin_path.entry_points(worker, ENTRY_POINTS)]
        )
        self._plugins += more
        self._sorted = sorted(self._plugins, key=lambda plugin: plugin.name)

    def of(self, *types: PluginType) -> list[Plugin]:
        """Return the plugins of these types, in the order of the types, by name."""
        return [each for kind in types for each in self._sorted if each.type is kind]

    def find(self, name: str, *types: PluginType) -> Plugin | None:
        """Return a plugin by one of its names; None if no plugin of these types has it."""
        candidates = self.of(*(types or tuple(PluginType)))
        exact = next((each for each in candidates if each.name == name), None)
        return exact or next((each for each in candidates if name in _aliases(each)), None)

    def connector(self, name: str) -> Connector:
        """Return a new connector; `UnknownPlugin` if there is none of this name."""
        connector: Connector = self._find_connector(name).create()
        if not isinstance(connector, SourceConnector | SinkConnector):
            raise ConnectError(f"The plugin {name} is neither a SourceConnector nor a SinkConnector")
        return connector

    def is_sink(self, name: str) -> bool:
        return self._find_connector(name).type is PluginType.SINK

    def converter(self, name: str) -> Converter:
        converter: Converter = self._required(name, PluginType.CONVERTER).create()
        return converter

    def header_converter(self, name: str) -> HeaderConverter:
        converter: HeaderConverter = self._required(name, PluginType.HEADER_CONVERTER).create()
        return converter

    def _find_connector(self, name: str) -> Plugin:
        return self._required(name, PluginType.SINK, PluginType.SOURCE)

    def _required(self, name: str, *types: PluginType) -> Plugin:
        found = self.find(name, *types)
        if found is None:
            known = [each.name for each in self.of(*types)]
            kind = "Connector" if PluginType.SINK in types else types[0].value
            aliases = [alias for each in self.of(*types) for alias in _aliases(each)]
            close = difflib.get_close_matches(name, [*known, *aliases], 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise UnknownPlugin(
                f"Failed to find any class that implements {kind} and which name matches {name}, available "
                f"{kind.lower()}s are: {', '.join(known)}.{hint}"
            )
        return found


def java_name(cls: type) -> str:
    """Return the name of a plugin's class in Kafka Connect; its own name if it has none there."""
    target = f"{cls.__module__}:{cls.__qualname__}"
    return _NAMES.get(target, f"{cls.__module__}.{cls.__qualname__}")


def _aliases(plugin: Plugin) -> Iterator[str]:
    simple = plugin.name.rpartition(".")[2]
    yield simple
    suffix = "Converter" if "converter" in plugin.type.value else "Connector"
    if simple.endswith(suffix) and simple != suffix:
        yield simple.removesuffix(suffix)


def _installed(points: Iterable[EntryPoint]) -> list[Plugin]:
    """Return the connectors of other packages; one that cannot be imported is left out."""
    found = []
    for each in points:
        plugin = Plugin(each.name, PluginType.SOURCE, each.value)
        try:
            is_sink = issubclass(plugin.load(), SinkConnector)
        except (ConnectError, TypeError):
            continue
        found.append(plugin._replace(type=PluginType.SINK if is_sink else PluginType.SOURCE))
    return found
