"""One Spark session and one broker for all tests of a worker: a session takes seconds to start.

With `MOLDAU_TEST_BROKER=apache` the broker is Apache Kafka (`KAFKA_LIBS` names its jars).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.pipelines.spark.java import JavaMissing, find_java
from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = _missing_java()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if missing:
                item.add_marker(pytest.mark.skip(reason=missing))


def _missing_java() -> str:
    """Return why there is no Java for Spark, or an empty string."""
    try:
        find_java(os.environ)
    except JavaMissing as missing:
        return str(missing)
    return ""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local quick-start session with few shuffle partitions."""
    from moldau import pipelines

    session = pipelines.session(
        "tests",
        quick_start=True,
        config={
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield session
    session.stop()


#: Retention would delete records with old timestamps during a test; windowed tables have a retention of their
#: own, so it never begins.
KEEPS_EVERYTHING = {"log.retention.ms": -1, "log.initial.task.delay.ms": 3_600_000}


@pytest.fixture(scope="session")
def broker() -> Iterator[Cluster | ApacheCluster]:
    apache_instead = os.environ.get("MOLDAU_TEST_BROKER") == "apache"
    with (ApacheCluster if apache_instead else Cluster)(config=KEEPS_EVERYTHING) as cluster:
        yield cluster
