"""mm2.properties: scopes, precedence, defaults, and what is refused before anything starts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau.pipelines.mirror.config.definitions import MirrorConfigError
from moldau.pipelines.mirror.config.flow import TopicSelection
from moldau.pipelines.mirror.config.properties import MirrorConfig, read_config

BASE = {
    "clusters": "us, eu",
    "us.bootstrap.servers": "us1:9092",
    "eu.bootstrap.servers": "eu1:9092",
    "us->eu.enabled": "true",
}


def parsed(more: dict[str, str]) -> MirrorConfig:
    return read_config(BASE | more)


def refused(more: dict[str, str]) -> str:
    with pytest.raises(MirrorConfigError) as caught:
        parsed(more)
    return str(caught.value)


def test_only_enabled_flows_copy_but_all_pairs_emit_heartbeats() -> None:
    found = parsed({})
    assert [str(flow) for flow in found.flows] == ["us->eu"]
    assert sorted(str(pair) for pair in found.heartbeats) == ["eu->us", "us->eu"]
    assert parsed({"emit.heartbeats.enabled": "false"}).heartbeats == ()


def test_the_setting_of_a_flow_takes_precedence() -> None:
    found = parsed({"topics": "a", "us->eu.topics": "b.*", "tasks.max": "3"}).flow("us->eu")
    assert found["topics"] == ("b.*",)
    assert found["tasks.max"] == 3


def test_defaults_are_mirror_makers() -> None:
    flow = parsed({}).flow("us->eu")
    assert flow["replication.factor"] == 2
    assert flow["sync.topic.configs.interval.seconds"] == 600
    assert flow.offset_syncs_topic == "mm2-offset-syncs.eu.internal"
    assert flow.checkpoints_topic == "us.checkpoints.internal"
    assert flow.offsets_topic == "mm2-offsets.us.internal"
    assert flow.read_committed
    selection = TopicSelection(flow)
    assert [
        name
        for name in ("orders", "mm2-status.us.internal", "us.checkpoints.internal", "__t", "x.replica")
        if selection.mirrors(name)
    ] == ["orders"]


def test_offset_syncs_on_the_target_have_the_name_of_the_source() -> None:
    flow = parsed({"us->eu.offset-syncs.topic.location": "target"}).flow("us->eu")
    assert flow.offset_syncs_topic == "mm2-offset-syncs.us.internal"


def test_worker_settings_belong_to_the_target_cluster() -> None:
    flow = parsed({"eu.offset.storage.replication.factor": "1", "us.offset.storage.topic": "other"}).flow(
        "us->eu"
    )
    assert flow["offset.storage.replication.factor"] == 1
    assert flow.offsets_topic == "mm2-offsets.us.internal"


def test_the_most_specific_client_setting_wins() -> None:
    flow = parsed(
        {
            "security.protocol": "PLAINTEXT",
            "us.consumer.fetch.max.bytes": "1000",
            "us->eu.consumer.fetch.max.bytes": "2000",
            "eu.producer.delivery.timeout.ms": "3000",
            "us.producer.delivery.timeout.ms": "4000",
        }
    ).flow("us->eu")
    assert flow.source_properties["fetch.max.bytes"] == "2000"
    assert flow.target_properties["delivery.timeout.ms"] == "3000"
    assert flow.source_settings("copy").bootstrap[0].host == "us1"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"us->eu.topcis": "a"}, "did you mean us->eu.topics?"),
        ({"sync.group.offset.enabled": "true"}, "did you mean sync.group.offsets.enabled?"),
        ({"us->fr.enabled": "true"}, "us, eu"),
        ({"eu.bootstrap.server": "x:1"}, "did you mean eu.bootstrap.servers?"),
        ({"uss.bootstrap.servers": "x:1"}, "did you mean us.bootstrap.servers?"),
        ({"us->eu.enabled": "yes"}, "expected true or false"),
        ({"replication.factor": "two"}, "expected a whole number"),
        ({"refresh.topics.interval.seconds": "0"}, "at least 0.1"),
        ({"offset-syncs.topic.location": "both"}, "source, target"),
        ({"us->eu.topics": "a[", "us->eu.enabled": "true"}, "not a regular expression"),
        ({"us->eu.enabled": "false"}, "No flow is enabled"),
        ({"replication.policy.class": "com.example.Policy"}, "IdentityReplicationPolicy"),
        ({"topic.filter.class": "com.example.Filter"}, "DefaultTopicFilter"),
        ({"value.converter": "org.apache.kafka.connect.json.JsonConverter"}, "ByteArrayConverter"),
        ({"eu.bootstrap.servers": "nowhere"}, "expected host:port"),
        (
            {"sync.group.offsets.enabled": "true", "emit.checkpoints.enabled": "false"},
            "needs emit.checkpoints",
        ),
        (
            {"exactly.once.source.support": "enabled", "us.consumer.isolation.level": "read_uncommitted"},
            "read_committed",
        ),
    ],
)
def test_invalid_settings_are_refused_with_a_remedy(given: dict[str, str], sentence: str) -> None:
    assert sentence in refused(given)


def test_clusters_are_required() -> None:
    with pytest.raises(MirrorConfigError, match="at least two"):
        read_config({"clusters": "us"})
    with pytest.raises(MirrorConfigError, match=re.escape("eu.bootstrap.servers is missing")):
        read_config({"clusters": "us,eu", "us.bootstrap.servers": "a:1", "us->eu.enabled": "true"})


def test_settings_without_effect_are_named() -> None:
    found = parsed({"us->eu.producer.linger.ms": "5", "offset.lag.max": "0"})
    assert found.warnings == ("us->eu.producer.linger.ms has no effect", "offset.lag.max has no effect")


def test_flows_can_be_limited_to_targets() -> None:
    both = BASE | {"eu->us.enabled": "true"}
    assert [str(flow) for flow in read_config(both, ["us"]).flows] == ["eu->us"]
    with pytest.raises(MirrorConfigError, match="--clusters names asia"):
        read_config(both, ["asia"])


IDENTITY = {
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "eu->us.enabled": "true",
}


def test_identity_in_both_directions_must_not_loop() -> None:
    assert "circulate forever" in refused(IDENTITY)
    found = parsed(IDENTITY | {"us->eu.topics": "orders, both", "eu->us.topics": "payments, both"})
    selection = TopicSelection(found.flow("us->eu"))
    assert [name for name in ("orders", "both", "payments") if selection.mirrors(name)] == ["orders"]


def test_identity_in_a_circle_must_not_loop() -> None:
    circle = {
        **IDENTITY,
        "clusters": "us, eu, asia",
        "asia.bootstrap.servers": "asia1:9092",
        "eu->us.enabled": "false",
        "eu->asia.enabled": "true",
        "asia->us.enabled": "true",
    }
    assert "in a circle" in refused(circle)
    (warning,) = parsed(circle | {"asia->us.topics": "own"}).warnings
    assert "asia->us us->eu eu->asia form a circle" in warning
    assert parsed(circle | {"asia->us.enabled": "false"}).warnings == ()


def test_transformations_are_refused() -> None:
    assert "as they are" in refused({"transforms": "mask"})
    assert "as they are" in refused({"us->eu.transforms.mask.type": "MaskField"})


def test_providers_replace_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secrets.properties").write_text("servers=eu2:9092\n")
    monkeypatch.setenv("US_SERVERS", "us2:9092")
    flow = parsed(
        {
            "config.providers": "env,file",
            "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
            "us.bootstrap.servers": "${env:US_SERVERS}",
            "eu.bootstrap.servers": f"${{file:{tmp_path}/secrets.properties:servers}}",
        }
    ).flow("us->eu")
    assert flow.source_settings("x").bootstrap[0].host == "us2"
    assert flow.target_settings("x").bootstrap[0].host == "eu2"
    assert "${env:NOT_THERE_AT_ALL} has no value" in refused(
        {
            "config.providers": "env",
            "config.providers.env.class": "EnvVarConfigProvider",
            "us.bootstrap.servers": "${env:NOT_THERE_AT_ALL}",
        }
    )
