"""Settings, defaults, policies and filters are MirrorMaker 2's; every intended difference is listed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from moldau.pipelines.mirror.config import clients
from moldau.pipelines.mirror.config.definitions import (
    CONVERTERS,
    SETTINGS,
    TRANSFORMATIONS,
    WITHOUT_EFFECT,
)
from moldau.pipelines.mirror.config.flow import Flow
from moldau.pipelines.mirror.config.policy import ReplicationPolicy
from moldau.pipelines.mirror.config.properties import read_config
from tests.harness.apache.node import java_command

pytestmark = pytest.mark.interop

_TABLES = Path(__file__).parents[1] / "java" / "MirrorTables.java"
#: Defaults of ours: flows are off unless enabled, and everything is found sooner.
OTHER_DEFAULTS = {
    "enabled": "false",
    "refresh.topics.interval.seconds": "5",
    "refresh.groups.interval.seconds": "5",
    "emit.checkpoints.interval.seconds": "5",
    "sync.group.offsets.interval.seconds": "5",
}
#: Settings of a single connector on Connect, which mm2.properties does not have.
OF_CONNECTORS = {"source.cluster.alias", "target.cluster.alias", "config.providers"}
NAMES = [
    *("orders", "orders.internal", "orders-internal", "us.orders", "us_orders", "us.eu.orders", "us_eu_x"),
    *("heartbeats", "us.heartbeats", "us_heartbeats", "my.heartbeats", "my-heartbeats", "eu.us.heartbeats"),
    *("us.checkpoints.internal", "us_checkpoints_internal", "a.b.checkpoints.internal", "mm2-status"),
    *("mm2-offset-syncs.eu.internal", "mm2-offset-syncs_eu_internal", "mm2-offsets.us.internal"),
    *("mm2-configs.us.internal", "mm2.internal", "__consumer_offsets", "__", ".hidden", "name.", "us.", "_x"),
    *("x.replica", "connect-offsets", "connect-group", "console-consumer-1", "us..double", "a_b.c", "..."),
    *("retention.ms", "min.insync.replicas", "message.timestamp.type", "cleanup.policy"),
    *("log.message.timestamp.before.max.ms", "unclean.leader.election.enable"),
]


@pytest.fixture(scope="module")
def answers(mirror_libs: Path) -> list[list[str]]:
    command = java_command(mirror_libs, str(_TABLES))
    text = "".join(f"{name}\n" for name in NAMES)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]


def flow() -> Flow:
    properties = {
        "clusters": "us, eu",
        "bootstrap.servers": "localhost:9092",
        "us->eu.enabled": "true",
    }
    return read_config(properties).flows[0]


def test_every_setting_is_known_and_has_its_default(answers: list[list[str]]) -> None:
    unknown, different = [], {}
    for _, name, *default in (each for each in answers if each[0] == "setting"):
        setting = SETTINGS.get(name)
        if setting is None:
            known = name in WITHOUT_EFFECT | OF_CONNECTORS | {*TRANSFORMATIONS, *CONVERTERS}
            of_converter = name.startswith(tuple(f"{each}." for each in CONVERTERS))
            if not (known or of_converter or clients.is_client_setting(name)):
                unknown.append(name)
        elif _plain(setting.default) != _plain("".join(default)):
            different[name] = setting.default
    assert unknown == []
    assert different == OTHER_DEFAULTS


def _plain(default: str) -> str:
    """Return a list without brackets, and without the escapes of dots in regular expressions."""
    return default.strip("[]").replace("\\", "")


def test_policies_give_the_same_names(answers: list[list[str]]) -> None:
    policies = {
        "default": ReplicationPolicy(),
        "identity": ReplicationPolicy(identity_source="us"),
        "separator": ReplicationPolicy("_", "_"),
        "separator-of-topics": ReplicationPolicy("_", "."),
    }
    theirs = {
        (name, kind): answer for what, name, *rest in answers if what == "policy" for kind, answer in [rest]
    }
    ours = {(name, kind): _verdicts(policies[kind], name) for name, kind in theirs}
    assert ours == theirs


def _verdicts(policy: ReplicationPolicy, name: str) -> str:
    source, upstream = policy.topic_source(name), policy.upstream_topic(name)
    words = [
        policy.format_remote_topic("us", name),
        "null" if source is None else source,
        "null" if upstream is None else upstream,
        policy.original_topic(name),
        *(str(each).lower() for each in (policy.is_internal_topic(name), policy.is_heartbeats_topic(name))),
        str(policy.is_checkpoints_topic(name)).lower(),
        policy.offset_syncs_topic("eu"),
        policy.checkpoints_topic("us"),
    ]
    return " ".join(words)


def test_filters_choose_the_same_names(answers: list[list[str]]) -> None:
    from moldau.pipelines.mirror.config.flow import TopicSelection

    mirrored = flow()
    selection = TopicSelection(mirrored)
    ours = {
        name: " ".join(
            str(each).lower()
            for each in (
                mirrored.topics.allows(name),
                mirrored.groups.allows(name),
                selection.copies_config(name),
            )
        )
        for name in NAMES
    }
    assert ours == {name: answer for what, name, *rest in answers if what == "filters" for answer in rest}
