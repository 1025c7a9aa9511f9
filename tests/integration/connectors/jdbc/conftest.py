from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.connectors.jdbc.databases import Sql, sql_of


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def sql(request: pytest.FixtureRequest, tmp_path: Path) -> Sql:
    """An empty database of each kind."""
    kind = request.param
    return sql_of(kind, None if kind == "sqlite" else request.getfixturevalue(kind), tmp_path)


@pytest.fixture
def postgresql_sql(request: pytest.FixtureRequest, tmp_path: Path) -> Sql:
    return sql_of("postgresql", request.getfixturevalue("postgresql"), tmp_path)


@pytest.fixture
def mariadb_sql(request: pytest.FixtureRequest, tmp_path: Path) -> Sql:
    return sql_of("mariadb", request.getfixturevalue("mariadb"), tmp_path)
