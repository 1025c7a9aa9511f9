"""The client, the settings and the JSON forms that both MongoDB connectors share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    Password,
)
from moldau.pipelines.connect.data.errors import ConfigError, ConnectError

URI, DATABASE, COLLECTION = "connection.uri", "database", "collection"


class MissingDriver(ConnectError):
    """The package `pymongo` is not installed."""


def define_connection(definition: ConfigDef, *, database_required: bool) -> ConfigDef:
    high, text = Importance.HIGH, ConfigType.STRING
    definition.define(
        URI,
        ConfigType.PASSWORD,
        "mongodb://localhost:27017",
        high,
        "URI of the servers, with user and password and options; it is hidden like a password.",
    )
    default = NO_DEFAULT if database_required else ""
    definition.define(DATABASE, text, default, high, "Database.")
    return definition


def check_uri(value: Any) -> None:
    uri = value.value if isinstance(value, Password) else ""
    if not uri.startswith(("mongodb://", "mongodb+srv://")):
        raise ConfigError(
            f"Invalid value for configuration {URI}: it must begin with mongodb:// or mongodb+srv://"
        )


def connect(config: Mapping[str, Any]) -> Any:
    """Return a client; it connects with the first operation."""
    try:
        import pymongo
    except ImportError as error:
        raise MissingDriver("MongoDB needs the package pymongo: pip install 'moldau[mongodb]'") from error
    check_uri(config[URI])
    try:
        return pymongo.MongoClient(
            config[URI].value, appname="moldau", tz_aware=True, serverSelectionTimeoutMS=10_000
        )
    except (pymongo.errors.ConfigurationError, pymongo.errors.InvalidURI, ValueError):
        raise ConfigError(f"The value of {URI} is not a valid URI of MongoDB") from None


def is_transient(error: Exception) -> bool:
    """Return whether the operation may succeed later."""
    from pymongo import errors

    if isinstance(error, errors.ConnectionFailure):
        return True
    return isinstance(error, errors.PyMongoError) and (
        error.has_error_label("RetryableWriteError") or error.has_error_label("TransientTransactionError")
    )


def to_json(document: Any, formatter: str) -> str:
    """Return a document as JSON in one of the forms of MongoDB's connector."""
    from bson import json_util

    form = formatter.rpartition(".")[2]
    if form == "SimplifiedJson":
        return json_util.dumps(_simplified(document), json_options=json_util.RELAXED_JSON_OPTIONS)
    if form == "ExtendedJson":
        return json_util.dumps(document, json_options=json_util.CANONICAL_JSON_OPTIONS)
    return json_util.dumps(document, json_options=json_util.LEGACY_JSON_OPTIONS)


def from_json(text: str) -> Any:
    """Return the document of JSON, in any of its extended forms; `ValueError` if it is none."""
    from bson import json_util

    try:
        return json_util.loads(text, json_options=json_util.RELAXED_JSON_OPTIONS)
    except (TypeError, KeyError) as error:
        raise ValueError(str(error)) from error


def _simplified(value: Any) -> Any:
    from base64 import b64encode

    from bson import Decimal128, Int64, ObjectId

    if isinstance(value, Mapping):
        return {name: _simplified(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_simplified(each) for each in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, ObjectId | Decimal128):
        return str(value)
    if isinstance(value, Int64):
        return int(value)
    return b64encode(value).decode() if isinstance(value, bytes) else value


FORMATTERS: Final = (
    *(
        f"com.mongodb.kafka.connect.source.json.formatter.{each}"
        for each in ("DefaultJson", "ExtendedJson", "SimplifiedJson")
    ),
)
