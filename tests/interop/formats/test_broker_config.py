"""Properties files that Apache Kafka accepts or refuses: Moldau does the same, with listed exceptions."""

from __future__ import annotations

import base64

import pytest

from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import ConfigError
from tests.interop.java_oracle import ask_java
from tests.unit.config.node_properties import NODE

pytestmark = pytest.mark.interop

BROKER = {"process.roles": "broker", "listeners": "PLAINTEXT://:9092", "node.id": "2"}
CONTROLLER = {"process.roles": "controller", "listeners": "CONTROLLER://:9093"}
NAMED = {
    "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "listeners": "A://:1,B://:2,CONTROLLER://:3",
}
SERVERS = {"controller.quorum.bootstrap.servers": "localhost:9093", "controller.quorum.voters": ""}

CHANGES: list[dict[str, str]] = [
    {},
    *({name: ""} for name in NODE),
    BROKER,
    BROKER | {"node.id": "1"},
    BROKER | {"listeners": NODE["listeners"]},
    BROKER | {"controller.listener.names": "A,B"},
    BROKER | {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
    BROKER | {"controller.quorum.auto.join.enable": "true"},
    BROKER | {"advertised.listeners": "CONTROLLER://h:1"},
    BROKER | {"advertised.listeners": "OTHER://h:1"},
    CONTROLLER,
    CONTROLLER | {"node.id": "2"},
    CONTROLLER | {"listeners": NODE["listeners"]},
    CONTROLLER | {"inter.broker.listener.name": "CONTROLLER"},
    CONTROLLER | {"advertised.listeners": "CONTROLLER://h:9"},
    CONTROLLER | {"advertised.listeners": "PLAINTEXT://h:9"},
    CONTROLLER | {"advertised.listeners": "CONTROLLER://0.0.0.0:9"},
    CONTROLLER | {"listeners": "CONTROLLER://0.0.0.0:9093"},
    CONTROLLER | {"controller.listener.names": "CONTROLLER,X"},
    SERVERS,
    SERVERS | {"controller.quorum.bootstrap.servers": "x"},
    SERVERS | {"controller.quorum.bootstrap.servers": "[::1]:1"},
    SERVERS | {"controller.quorum.bootstrap.servers": "h:99999"},
    NAMED,
    NAMED | {"inter.broker.listener.name": "a"},
    NAMED | {"inter.broker.listener.name": "CONTROLLER"},
    NAMED | {"inter.broker.listener.name": "Z"},
    NAMED | {"inter.broker.listener.name": "A", "advertised.listeners": "B://h:2"},
    NAMED | {"inter.broker.listener.name": "A", "advertised.listeners": "A://h:2,B://h:2"},
    NAMED | {"inter.broker.listener.name": "A", "security.inter.broker.protocol": "PLAINTEXT"},
    NAMED | {"listener.security.protocol.map": "A"},
    NAMED | {"listener.security.protocol.map": "A:FOO,B:PLAINTEXT,CONTROLLER:PLAINTEXT"},
    {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "h:5"},
    {"log.retention.ms": "5", "log.retention.hours": "0"},
]
ONE_CHANGE = {
    "node.id": ["-1", "x", "2147483648"],
    "broker.id": ["1", "2"],
    "process.roles": ["foo", "broker,broker,controller", "controller,broker"],
    "controller.quorum.voters": [
        *("x", "1@h", "1@h:1", "2@h:1", "1@h:1,2@h:2", "1@[::1]:9", "1@0.0.0.0:1", "1@h:99999", "a@h:1"),
        *("1@h:1,1@h:2", " 1@h:1 "),
    ],
    "listeners": [
        *("PLAINTEXT://:9092", "CONTROLLER://:9093", "PLAINTEXT://:9092,CONTROLLER://:9092"),
        *("PLAINTEXT://:9092,PLAINTEXT://:9094,CONTROLLER://:9093", "PLAINTEXT://:0,CONTROLLER://:0"),
        *("PLAINTEXT://127.0.0.1:1,CONTROLLER://[::1]:1", "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.2:1"),
        *("PLAINTEXT://h:1,CONTROLLER://127.0.0.2:1", "PLAINTEXT://h:1,CONTROLLER://i:1"),
        *("PLAINTEXT://0.0.0.0:1,CONTROLLER://:2", "PLAINTEXT://:1,CONTROLLER://0.0.0.0:2"),
        *("FOO://:1,CONTROLLER://:2", "PLAINTEXT://h,CONTROLLER://:2", "PLAINTEXT:1,CONTROLLER://:2"),
        *("plaintext://:1,controller://:2", "PLAINTEXT://:1,CONTROLLER://:2,PLAINTEXT://:1"),
        *("PLAINTEXT://[::]:1,CONTROLLER://:2", "PLAINTEXT://h_x:1,CONTROLLER://:2"),
        *("PLAINTEXT://h!x:1,CONTROLLER://:2", "SSL://:1,CONTROLLER://:2", "PLAINTEXT://:1,,CONTROLLER://:2"),
        " PLAINTEXT://:1 , CONTROLLER://:2 ",
    ],
    "advertised.listeners": [
        *("PLAINTEXT://h:1", "PLAINTEXT://0.0.0.0:1", "CONTROLLER://h:1", "PLAINTEXT://h:1,CONTROLLER://h:1"),
        *("PLAINTEXT://h:1,CONTROLLER://0.0.0.0:2", "FOO://h:1", "PLAINTEXT://h:1,PLAINTEXT://i:2"),
        *("PLAINTEXT://:1", "PLAINTEXT://[::1]:1", "PLAINTEXT://h:0"),
    ],
    "controller.listener.names": ["CONTROLLER,X", "X", "PLAINTEXT", "controller", "PLAINTEXT,CONTROLLER"],
    "early.start.listeners": ["PLAINTEXT", "X", ""],
    "inter.broker.listener.name": ["PLAINTEXT", "X"],
    "security.inter.broker.protocol": ["FOO", "SSL", "PLAINTEXT"],
    "log.dirs": ["/a,/b", "/a,/a", "/a,,/b"],
    "cordoned.log.dirs": ["/y", "/data/a", "*", "*,/data/a", ""],
    "log.roll.ms": ["0", "-1", "1"],
    "log.roll.hours": ["0"],
    "log.roll.jitter.ms": ["-1", "0"],
    "log.retention.ms": ["0", "-1", "-2", "1"],
    "log.retention.minutes": ["0", "-5"],
    "log.retention.hours": ["0", "-1"],
    "log.cleaner.threads": ["0", "200"],
    "log.cleaner.dedupe.buffer.size": ["1048576", "1048577"],
    "replica.fetch.wait.max.ms": ["40000", "30000"],
    "replica.socket.timeout.ms": ["100"],
    "replica.lag.time.max.ms": ["100"],
    "queued.max.request.bytes": ["5", "0", "104857600"],
    "max.connections.per.ip": ["0"],
    "max.connections.per.ip.overrides": ["h:5", "h", "h:x", "!:5", "::1:5"],
    "connections.max.idle.ms": ["50", "-1"],
    "connection.failed.authentication.delay.ms": ["600000"],
    "group.coordinator.rebalance.protocols": ["consumer", "classic", "foo"],
    "offsets.topic.compression.codec": ["9", "4", "-1"],
    "group.consumer.session.timeout.ms": ["1", "70000"],
    "group.consumer.heartbeat.interval.ms": ["45000", "1", "15000"],
    "group.consumer.min.session.timeout.ms": ["99999"],
    "group.consumer.max.heartbeat.interval.ms": ["1"],
    "group.consumer.assignment.interval.ms": ["99999"],
    "group.consumer.migration.policy": ["Upgrade", "x"],
    "group.share.assignors": [
        "simple,simple",
        "simple,org.apache.kafka.coordinator.group.assignor.SimpleAssignor",
    ],
    "group.share.heartbeat.interval.ms": ["46000"],
    "group.share.record.lock.duration.ms": ["2000", "70000"],
    "group.share.delivery.count.limit": ["2", "10", "11"],
    "group.share.partition.max.record.locks": ["5000"],
    "group.share.max.partition.max.record.locks": ["2000"],
    "group.share.max.share.sessions": ["1"],
    "group.streams.session.timeout.ms": ["1"],
    "group.streams.num.standby.replicas": ["3"],
    "share.coordinator.state.topic.compression.codec": ["7"],
    "num.partitions": ["0", "x", "", " 3 "],
    "log.segment.bytes": ["100"],
    "log.cleanup.policy": ["foo", "", "compact,compact"],
    "compression.type": ["none"],
    "auto.create.topics.enable": ["yes", " TRUE "],
    "metadata.log.segment.bytes": ["100"],
    "internal.metadata.log.segment.bytes": ["100"],
    "offsets.topic.replication.factor": ["99999"],
    "no.such.name": ["1"],
    "authorizer.class.name": ["x.Y"],
}
CASES = [NODE | change for change in CHANGES]
CASES += [NODE | {name: value} for name, values in ONE_CHANGE.items() for value in values]
CASES += [{name: value for name, value in NODE.items() if name != left_out} for left_out in NODE]

#: Accepted by Apache Kafka, but no port can be negative.
STRICTER = [NODE | {"listeners": "PLAINTEXT://:-1,CONTROLLER://:9093"}]
#: Refused by Apache Kafka, which loads the Java class; Moldau refuses it when the node starts.
JAVA_CLASSES = [
    NODE | {"group.consumer.assignors": "x.Y"},
    NODE | {"principal.builder.class": "java.lang.String"},
]


def judged_by_apache(cases: list[dict[str, str]]) -> list[str]:
    files = ["".join(f"{name}={value}\n" for name, value in case.items()) for case in cases]
    answers = ask_java(
        "ConfigVerdicts", (base64.b64encode(text.encode("latin-1")).decode() for text in files)
    )
    assert len(answers) == len(cases)
    return [verdict for _, verdict in answers]


def judged_here(case: dict[str, str]) -> str:
    # Blanks before a value are dropped in a properties file.
    try:
        BrokerConfig({name: value.lstrip() for name, value in case.items()})
    except ConfigError as error:
        return error.sentence
    return "OK"


def test_properties_files_are_accepted_or_refused_like_apache_kafka() -> None:
    verdicts = judged_by_apache(CASES + STRICTER + JAVA_CLASSES)
    for case, verdict in zip(CASES, verdicts, strict=False):
        changes = {name: value for name, value in case.items() if NODE.get(name) != value}
        ours = judged_here(case)
        assert (ours == "OK") == (verdict == "OK"), f"{changes}\nApache: {verdict}\nMoldau: {ours}"
    exceptions = verdicts[len(CASES) :]
    assert [verdict == "OK" for verdict in exceptions] == [True, False, False]
    assert [judged_here(case) == "OK" for case in STRICTER + JAVA_CLASSES] == [False, True, True]
