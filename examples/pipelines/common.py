"""What the examples share: a cluster to run on, records to begin with, and waiting for an outcome."""

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

from moldau.client import AdminClient, NewTopic, Producer
from moldau.client.admin.client import checked
from moldau.pipelines.spark.java import JavaMissing, find_java
from moldau.testing import Cluster


class Place(NamedTuple):
    """Where an example runs: a cluster, and a folder for checkpoints and files."""

    bootstrap_servers: str
    folder: Path


def parser(description: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--bootstrap-server", help="a running cluster; without it one is started for the example"
    )
    made.add_argument("--folder", type=Path, help="for checkpoints and files; without it a temporary one")
    return made


@contextmanager
def place(options: argparse.Namespace) -> Iterator[Place]:
    """The cluster and the folder that were named, or ones that are gone afterwards."""
    try:
        find_java(os.environ)
    except JavaMissing as missing:
        raise SystemExit(str(missing)) from missing
    print("Spark starts, which takes some seconds ...", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="moldau-example-") as temporary:
        folder = options.folder or Path(temporary)
        if options.bootstrap_server:
            yield Place(options.bootstrap_server, folder)
            return
        with Cluster() as cluster:
            yield Place(cluster.bootstrap_servers, folder)


def create_topics(servers: str, *names: str, partitions: int = 2, compacted: bool = False) -> set[str]:
    """Create the topics that are not there yet; their names."""
    configs = {"cleanup.policy": "compact"} if compacted else {}
    with AdminClient(servers) as admin:
        missing = set(names) - set(admin.list_topics())
        checked(
            admin.create_topics([NewTopic(name, partitions, configs=configs) for name in sorted(missing)])
        )
    return missing


def send(servers: str, topic: str, records: Iterable[tuple[str | None, Any, int | None]]) -> int:
    """Send JSON values with their keys and, where given, their times in milliseconds."""
    count = 0
    settings = {"bootstrap.servers": servers, "linger.ms": 5}
    with Producer(settings, key_serializer="string", value_serializer="json") as producer:
        for key, value, timestamp in records:
            producer.send(topic, value, key, timestamp=timestamp)
            count += 1
    return count


def wait_for(what: str, look: Callable[[], Any], seconds: float = 300.0) -> Any:
    """Look until there is an outcome. Sooner or later: a busy machine takes its time."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.2)
    return seen


def some_hours_ago(hours: int = 6) -> int:
    """The full hour that many hours ago, in milliseconds: records much older are deleted by retention."""
    return (int(time.time()) // 3600 - hours) * 3_600_000
