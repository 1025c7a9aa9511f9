"""Shared by the examples: a cluster, input records, and waiting for results."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from moldau.client import AdminClient, NewTopic, Producer, checked
from moldau.pipelines.spark.java import JavaMissing, find_java
from moldau.testing import Cluster


class Place(NamedTuple):
    """The cluster of an example and its folder for checkpoints and files."""

    bootstrap_servers: str
    folder: Path


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--bootstrap-server", help="use this cluster; by default one is started for the example"
    )
    made.add_argument(
        "--folder", type=Path, help="folder for checkpoints and files; by default a temporary one"
    )
    return made


@contextmanager
def place(options: argparse.Namespace) -> Iterator[Place]:
    """Yield the cluster and folder in the options, or temporary ones."""
    try:
        find_java(os.environ)
    except JavaMissing as missing:
        raise SystemExit(str(missing)) from missing
    print("Starting Spark, which takes some seconds ...", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="moldau-example-") as temporary:
        folder = options.folder or Path(temporary)
        if options.bootstrap_server:
            yield Place(options.bootstrap_server, folder)
            return
        with Cluster() as cluster:
            yield Place(cluster.bootstrap_servers, folder)


def create_topics(servers: str, *names: str, partitions: int = 2, compacted: bool = False) -> set[str]:
    """Create the topics that do not exist; return their names."""
    configs = {"cleanup.policy": "compact"} if compacted else {}
    with AdminClient(servers) as admin:
        missing = set(names) - set(admin.list_topics())
        checked(
            admin.create_topics([NewTopic(name, partitions, configs=configs) for name in sorted(missing)])
        )
    return missing


def send(servers: str, topic: str, records: Iterable[tuple[str | None, Any, int | None]]) -> int:
    """Send JSON values with keys and optional timestamps in milliseconds; return their number."""
    count = 0
    settings = {"bootstrap.servers": servers, "linger.ms": 5}
    with Producer(settings, key_serializer="string", value_serializer="json") as producer:
        for key, value, timestamp in records:
            producer.send(topic, value, key, timestamp=timestamp)
            count += 1
    return count


def wait_for(what: str, look: Callable[[], Any], seconds: float = 300.0) -> Any:
    """Poll until there is a result; exit after a timeout that suits a busy machine."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.2)
    return seen


def some_hours_ago(hours: int = 6) -> int:
    """Return the full hour this many hours ago in milliseconds: retention would delete much older records."""
    return (int(time.time()) // 3600 - hours) * 3_600_000
