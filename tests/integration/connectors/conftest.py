"""One server of each database for all tests of a worker; every test has a database of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.databases.mariadb import MariaDb
from tests.harness.databases.postgresql import PostgreSql


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSql]:
    server = PostgreSql()
    yield server
    server.close()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    server = MariaDb()
    yield server
    server.close()
