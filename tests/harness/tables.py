"""Tables on this machine: an Iceberg catalog in SQLite with a folder as warehouse, and a folder of Delta
tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from moldau.pipelines.connect.connectors.lake.delta.connector import DeltaSinkConnector
from moldau.pipelines.connect.connectors.lake.iceberg.connector import IcebergSinkConnector


class IcebergLake:
    kind = "iceberg"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._properties = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
        }

    def connector(self) -> IcebergSinkConnector:
        return IcebergSinkConnector()

    def config(self, table: str = "db.events", **settings: str) -> dict[str, str]:
        """Return a connector that creates its tables and commits often."""
        return {
            "name": "lake",
            "connector.class": "iceberg",
            "topics": "events",
            "iceberg.tables": table,
            **{f"iceberg.catalog.{name}": text for name, text in self._properties.items()},
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.evolve-schema-enabled": "true",
            "iceberg.control.commit.interval-ms": "100",
            **settings,
        }

    def two_tables(self) -> dict[str, str]:
        return self.config("db.first,db.second")

    @property
    def catalog(self) -> Catalog:
        return load_catalog("iceberg", **self._properties)

    def table(self, name: str = "events") -> Table:
        return self.catalog.load_table(f"db.{name}")

    def rows(self, name: str = "events", sort: str = "id") -> list[dict[str, Any]]:
        found = self.table(name).scan().to_arrow()
        return list(found.sort_by(sort).to_pylist())

    def count(self) -> int:
        try:
            snapshot = self.table().current_snapshot()
        except NoSuchTableError:
            return 0
        return (
            0 if snapshot is None or snapshot.summary is None else int(snapshot.summary["total-records"] or 0)
        )

    def data_files(self) -> list[Path]:
        """Return the data files that exist, whether a snapshot contains them or not."""
        return sorted(self.folder.rglob("*.parquet"))


class DeltaTables:
    kind = "delta"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def connector(self) -> DeltaSinkConnector:
        return DeltaSinkConnector()

    def config(self, table: str = "events", **settings: str) -> dict[str, str]:
        return {
            "name": "lake",
            "connector.class": "delta",
            "topics": "events",
            "delta.tables": table,
            "delta.location": str(self.folder),
            "delta.control.commit.interval-ms": "100",
            **settings,
        }

    def two_tables(self) -> dict[str, str]:
        return self.config("first,second")

    def table(self, name: str = "events") -> DeltaTable:
        return DeltaTable(str(self.folder / name))

    def rows(self, name: str = "events", sort: str = "id") -> list[dict[str, Any]]:
        found = pa.table(self.table(name).to_pyarrow_table())
        return list(found.sort_by(sort).to_pylist())

    def count(self) -> int:
        try:
            return int(self.table().count())
        except TableNotFoundError:
            return 0

    def data_files(self) -> list[Path]:
        return sorted(each for each in self.folder.rglob("*.parquet") if "_delta_log" not in str(each))
