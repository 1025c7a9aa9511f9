"""kcat (Debian's, with an older librdkafka): produce, consume, metadata and offsets from the shell."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.wire.requests import stored_codecs

pytestmark = pytest.mark.skipif(
    shutil.which("kcat") is None, reason="kcat is not installed (apt install kcat)"
)

Kcat = Callable[..., str]


@pytest.fixture
def kcat(bootstrap: str) -> Kcat:
    def run(*arguments: str, stdin: str | bytes = b"", fails: bool = False) -> str:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        command = ["kcat", "-b", bootstrap, *arguments]
        done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
        assert (done.returncode != 0) == fails, done.stderr.decode()
        return done.stderr.decode() if fails else done.stdout.decode()

    return run


@pytest.fixture
def create(bootstrap: str) -> Callable[..., None]:
    def create_topic(name: str, partitions: int = 1, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": bootstrap})
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin.create_topics([new])[name].result(60)

    return create_topic


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_are_produced_and_consumed(
    codec: str, kcat: Kcat, bootstrap: str, topic: str, create: Callable[..., None]
) -> None:
    create(topic)
    lines = "".join(f"line {n} with some more words\n" for n in range(500))
    kcat("-P", "-t", topic, "-p", "0", "-z", codec, stdin=lines)
    assert kcat("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q") == lines
    # librdkafka does not compress a batch that would not become smaller.
    assert stored_codecs(bootstrap, topic) - {"none"} == {codec} - {"none"}


def test_keys_headers_nulls_and_timestamps_are_read_unchanged(
    kcat: Kcat, topic: str, create: Callable[..., None]
) -> None:
    create(topic)
    before = int(time.time() * 1000)
    kcat("-P", "-t", topic, "-p", "0", "-K", ":", "-Z", "-H", "from=kcat", "-H", "empty=", stdin="a:1\nb:\n")
    output = kcat("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-J")
    records = [json.loads(line) for line in output.splitlines()]
    assert [(r["key"], r["payload"], r["offset"]) for r in records] == [("a", "1", 0), ("b", None, 1)]
    assert records[0]["headers"] == ["from", "kcat", "empty", ""]
    assert before <= records[0]["ts"] <= time.time() * 1000
    assert records[0]["tstype"] == "create"


def test_the_cluster_is_listed(kcat: Kcat, bootstrap: str, topic: str, create: Callable[..., None]) -> None:
    create(topic, partitions=3)
    listed = json.loads(kcat("-L", "-J", "-t", topic))
    assert [broker["name"] for broker in listed["brokers"]] == [bootstrap]
    [described] = listed["topics"]
    assert described["topic"] == topic
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
    assert {len(partition["isrs"]) for partition in described["partitions"]} == {1}


def test_offsets_are_queried_by_timestamp(kcat: Kcat, topic: str, create: Callable[..., None]) -> None:
    create(topic)
    kcat("-P", "-t", topic, "-p", "0", stdin="1\n2\n3\n")
    assert kcat("-Q", "-t", f"{topic}:0:1000") == f"{topic} [0] offset 0\n"
    assert kcat("-Q", "-t", f"{topic}:0:-1") == f"{topic} [0] offset 3\n"
    assert kcat("-Q", "-t", f"{topic}:0:-2") == f"{topic} [0] offset 0\n"


@pytest.mark.parametrize(
    ("start", "expected"), [("2", "3\n4\n5\n"), ("-2", "4\n5\n"), ("s@1000", "1\n2\n3\n4\n5\n")]
)
def test_consume_from_an_offset(
    start: str, expected: str, kcat: Kcat, topic: str, create: Callable[..., None]
) -> None:
    create(topic)
    kcat("-P", "-t", topic, "-p", "0", stdin="1\n2\n3\n4\n5\n")
    assert kcat("-C", "-t", topic, "-p", "0", "-o", start, "-e", "-q") == expected


def test_an_idempotent_producer_keeps_the_order(kcat: Kcat, topic: str, create: Callable[..., None]) -> None:
    create(topic)
    lines = "".join(f"{n}\n" for n in range(5000))
    kcat(
        "-P",
        "-t",
        topic,
        "-p",
        "0",
        "-X",
        "enable.idempotence=true",
        "-X",
        "batch.num.messages=100",
        stdin=lines,
    )
    assert kcat("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q") == lines


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_produce_with_every_acks_value(
    acks: str, kcat: Kcat, topic: str, create: Callable[..., None]
) -> None:
    create(topic)
    kcat("-P", "-t", topic, "-p", "0", "-X", f"acks={acks}", stdin="one\ntwo\n")
    deadline = time.monotonic() + 60
    while (output := kcat("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q")) != "one\ntwo\n":
        assert time.monotonic() < deadline, output


def test_a_file_of_900_kilobytes_is_produced_as_one_record(
    kcat: Kcat, topic: str, create: Callable[..., None]
) -> None:
    create(topic)
    kcat("-P", "-t", topic, "-p", "0", "-D", "\x01", stdin="x" * 900_000)
    assert len(kcat("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-D", "")) == 900_000


def test_all_partitions_are_read(kcat: Kcat, topic: str, create: Callable[..., None]) -> None:
    create(topic, partitions=10)
    for partition in range(10):
        kcat("-P", "-t", topic, "-p", str(partition), stdin=f"{partition}\n")
    output = kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%p %o %s\n")
    assert sorted(output.splitlines()) == [f"{p} 0 {p}" for p in range(10)]


def test_producing_creates_the_topic(kcat: Kcat, topic: str) -> None:
    kcat("-P", "-t", topic, stdin="first\n")
    assert kcat("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q") == "first\n"


def test_a_compacted_topic_refuses_lines_without_a_key(
    kcat: Kcat, topic: str, create: Callable[..., None]
) -> None:
    create(topic, cleanup_policy="compact")
    said = kcat("-P", "-t", topic, "-p", "0", stdin="no key\n", fails=True)
    assert "Broker failed to validate record" in said
