"""The settings of the search sink, with the names of Confluent's Elasticsearch connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    ConfigValue,
    Importance,
    Range,
    ValidString,
)

URLS: Final = "connection.url"
USER, PASSWORD, API_KEY = "connection.username", "connection.password", "connection.api.key"
CONNECT_TIMEOUT, READ_TIMEOUT = "connection.timeout.ms", "read.timeout.ms"
COMPRESSION: Final = "connection.compression"
CA_FILE, CERTIFICATE, KEY_FILE = (
    *("elastic.https.ssl.ca.location", "elastic.https.ssl.certificate.location"),
    "elastic.https.ssl.key.location",
)
BATCH_SIZE, BATCH_BYTES = "batch.size", "bulk.size.bytes"
MAX_RETRIES, BACKOFF = "max.retries", "retry.backoff.ms"
KEY_IGNORE, TOPIC_KEY_IGNORE = "key.ignore", "topic.key.ignore"
SCHEMA_IGNORE, TOPIC_SCHEMA_IGNORE = "schema.ignore", "topic.schema.ignore"
COMPACT_MAPS: Final = "compact.map.entries"
WRITE_METHOD: Final = "write.method"
INSERT, UPSERT = "insert", "upsert"
ON_NULL, ON_MALFORMED = "behavior.on.null.values", "behavior.on.malformed.documents"
IGNORE, WARN, DELETE, FAIL = "ignore", "warn", "delete", "fail"
RESOURCES: Final = "topic.to.external.resource.mapping"
DATA_STREAM_TYPE, DATA_STREAM_DATASET = "data.stream.type", "data.stream.dataset"
DATA_STREAM_NAMESPACE, DATA_STREAM_TIMESTAMP = "data.stream.namespace", "data.stream.timestamp.field"


def search_config() -> ConfigDef:
    definition = ConfigDef()
    for define in (_define_connection, _define_writes, _define_documents, _define_streams):
        define(definition)
    return definition


def _define_connection(definition: ConfigDef) -> None:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition.define(URLS, ConfigType.LIST, NO_DEFAULT, high, "URLs of nodes of one cluster, tried in turn.")
    definition.define(USER, text, None, medium, "User.")
    definition.define(PASSWORD, ConfigType.PASSWORD, None, medium, "Password.")
    definition.define(API_KEY, ConfigType.PASSWORD, None, medium, "API key of Elasticsearch, encoded.")
    definition.define(
        CONNECT_TIMEOUT, ConfigType.INT, 1000, low, "Milliseconds to connect.", validator=Range(1)
    )
    definition.define(
        READ_TIMEOUT, ConfigType.INT, 30_000, low, "Milliseconds to wait for an answer.", validator=Range(1)
    )
    definition.define(COMPRESSION, ConfigType.BOOLEAN, False, low, "Compress requests with gzip.")
    definition.define(CA_FILE, text, None, medium, "PEM file with certificates to trust.")
    definition.define(CERTIFICATE, text, None, medium, "PEM file with the client's certificate.")
    definition.define(KEY_FILE, text, None, medium, "PEM file with the client's private key.")


def _define_writes(definition: ConfigDef) -> None:
    medium, low = Importance.MEDIUM, Importance.LOW
    definition.define(
        BATCH_SIZE,
        ConfigType.INT,
        2000,
        medium,
        "Maximum number of records in a bulk request.",
        validator=Range(1),
    )
    definition.define(
        BATCH_BYTES,
        ConfigType.INT,
        5 << 20,
        low,
        "Size after which a bulk request is sent.",
        validator=Range(1),
    )
    definition.define(
        MAX_RETRIES,
        ConfigType.INT,
        5,
        low,
        "How often to repeat a bulk request before the records wait for the worker's next attempt.",
        validator=Range(0),
    )
    definition.define(
        BACKOFF,
        ConfigType.LONG,
        100,
        low,
        "Milliseconds before the first repetition, doubled for each further one.",
        validator=Range(0),
    )


def _define_documents(definition: ConfigDef) -> None:
    high, medium, low, text = Importance.HIGH, Importance.MEDIUM, Importance.LOW, ConfigType.STRING
    definition.define(
        KEY_IGNORE,
        ConfigType.BOOLEAN,
        False,
        high,
        "Use topic, partition and offset as the id of documents, instead of the key.",
    )
    definition.define(
        SCHEMA_IGNORE,
        ConfigType.BOOLEAN,
        False,
        high,
        "Leave the mapping to the cluster, instead of making it from the schemas of records.",
    )
    definition.define(TOPIC_KEY_IGNORE, ConfigType.LIST, "", low, "Topics for which key.ignore is true.")
    definition.define(
        TOPIC_SCHEMA_IGNORE, ConfigType.LIST, "", low, "Topics for which schema.ignore is true."
    )
    definition.define(
        COMPACT_MAPS,
        ConfigType.BOOLEAN,
        True,
        low,
        "Write maps with text keys as objects, instead of arrays of key and value.",
    )
    definition.define(
        WRITE_METHOD,
        text,
        INSERT,
        low,
        "insert replaces the document of the same id; upsert changes only the fields in the record.",
        validator=ValidString((INSERT, UPSERT), ignore_case=True),
    )
    definition.define(
        ON_NULL,
        text,
        FAIL,
        low,
        "What to do with a record without value: ignore it, delete the document, or fail.",
        validator=ValidString((IGNORE, DELETE, FAIL), ignore_case=True),
    )
    definition.define(
        ON_MALFORMED,
        text,
        FAIL,
        low,
        "What to do with a document that the cluster refuses: fail (report it, see errors.tolerance), warn "
        "or ignore.",
        validator=ValidString((IGNORE, WARN, FAIL), ignore_case=True),
    )
    definition.define(
        RESOURCES, ConfigType.LIST, "", medium, "Indexes of topics, as topic:index; by default the topic."
    )


def _define_streams(definition: ConfigDef) -> None:
    low, text = Importance.LOW, ConfigType.STRING
    definition.define(
        DATA_STREAM_TYPE,
        text,
        "none",
        low,
        "Write to data streams of this type: logs or metrics; none: to indexes.",
        validator=ValidString(("none", "logs", "metrics"), ignore_case=True),
    )
    definition.define(
        DATA_STREAM_DATASET, text, "", low, "Data set of the data stream; ${topic} is replaced."
    )
    definition.define(DATA_STREAM_NAMESPACE, text, "${topic}", low, "Namespace of the data stream.")
    definition.define(
        DATA_STREAM_TIMESTAMP,
        ConfigType.LIST,
        "",
        low,
        "Fields whose first is the @timestamp of a document; by default the record's timestamp.",
    )


def check_search(values: Mapping[str, ConfigValue]) -> None:
    """Add the errors of combinations of settings."""
    for url in values[URLS].value or []:
        if not url.startswith(("http://", "https://")):
            values[URLS].errors.append("Every URL must begin with http:// or https://.")
    if values[URLS].value == []:
        values[URLS].errors.append("At least one URL is required.")
    for each in values[RESOURCES].value or []:
        topic, colon, index = each.partition(":")
        if not (topic and colon and index):
            values[RESOURCES].errors.append(f"{each!r} has not the form topic:index.")
    streams = str(values[DATA_STREAM_TYPE].value).lower() != "none"
    if streams and not values[DATA_STREAM_DATASET].value:
        values[DATA_STREAM_DATASET].errors.append(f"Required with {DATA_STREAM_TYPE}.")
    if streams and str(values[WRITE_METHOD].value).lower() == UPSERT:
        values[WRITE_METHOD].errors.append("Data streams cannot be updated: use insert.")
