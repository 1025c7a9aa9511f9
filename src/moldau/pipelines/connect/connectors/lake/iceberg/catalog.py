"""Catalogs by the settings of Iceberg's Kafka Connect sink.

`iceberg.catalog.*` is passed to `pyiceberg`. Names of Java classes and of JDBC are translated, so that a
configuration written for Iceberg's sink works; settings that concern Java alone are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from moldau.pipelines.connect.connectors.lake.settings import LakeSettings
from moldau.pipelines.connect.connectors.lake.store import LakeUnavailable
from moldau.pipelines.connect.data.errors import ConfigError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_IMPLEMENTATIONS: Final[Mapping[str, str]] = {
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog": "dynamodb",
    "org.apache.iceberg.gcp.bigquery.BigQueryMetastoreCatalog": "bigquery",
}
_TYPES: Final = ("rest", "hive", "sql", "glue", "dynamodb", "bigquery")
_RENAMED: Final[Mapping[str, str]] = {"client.region": "s3.region", "jdbc.schema-version": ""}
_JAVA_ONLY: Final = frozenset(
    {"catalog-impl", "io-impl", "jdbc.user", "jdbc.password", "s3.staging-dir", "ref"}
)
#: Errors of libraries that are imported only if they are used.
_FOREIGN: Final = (
    ("sqlalchemy.exc", "SQLAlchemyError"),
    ("thrift.Thrift", "TException"),
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("requests.exceptions", "RequestException"),
)


def open_catalog(settings: LakeSettings) -> Catalog:
    from pyiceberg.catalog import load_catalog

    with reachable("The catalog"):
        return load_catalog(settings["catalog"], **catalog_properties(settings.below("catalog.")))


def catalog_properties(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for pyiceberg; `ConfigError` if the catalog is not available in Python."""
    kind = _IMPLEMENTATIONS.get(given.get("catalog-impl", ""), given.get("type", ""))
    kind = "sql" if kind == "jdbc" else kind
    if kind not in _TYPES:
        chosen = given.get("catalog-impl") or given.get("type")
        valid = f"set iceberg.catalog.type to one of {', '.join(_TYPES)}."
        if not chosen:
            raise ConfigError(f'Missing required configuration "iceberg.catalog.type": {valid}')
        raise ConfigError(f"The Iceberg catalog {chosen} is not available: {valid}")
    found = {_RENAMED.get(name, name): value for name, value in given.items() if name not in _JAVA_ONLY}
    found.pop("", None)
    found["type"] = kind
    if kind == "sql" and found.get("uri", "").startswith("jdbc:"):
        found["uri"] = _database_url(found["uri"], given)
    warehouse = found.get("warehouse", "")
    if warehouse.startswith("s3n://"):
        found["warehouse"] = f"s3://{warehouse.removeprefix('s3n://')}"
    return found


def _database_url(url: str, given: Mapping[str, str]) -> str:
    from sqlalchemy.engine import make_url

    plain = url.removeprefix("jdbc:")
    if plain.startswith("sqlite:"):
        return f"sqlite:///{plain.removeprefix('sqlite:')}"
    changes: dict[str, Any] = {}
    if "jdbc.user" in given:
        changes = {"username": given["jdbc.user"], "password": given.get("jdbc.password")}
    return make_url(plain).set(**changes).render_as_string(hide_password=False)


@contextmanager
def reachable(what: str) -> Iterator[None]:
    """Turn failures of networks, catalogs and storage into `LakeUnavailable`."""
    try:
        yield
    except _failures() as error:
        raise LakeUnavailable(f"{what} is not available: {type(error).__name__}: {_short(error)}") from error


def _failures() -> tuple[type[Exception], ...]:
    from pyiceberg.exceptions import CommitStateUnknownException, RESTError

    modules = ((sys.modules.get(module), name) for module, name in _FOREIGN)
    foreign = [getattr(module, name) for module, name in modules if module is not None]
    return (OSError, RESTError, CommitStateUnknownException, *foreign)


def _short(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:500] if lines else ""
