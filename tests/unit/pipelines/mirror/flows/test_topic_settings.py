"""Which configs and ACLs of a source topic its mirror gets."""

from __future__ import annotations

from moldau.client.admin.acls import AclBinding, AclOperation, PatternType, PermissionType, ResourceType
from moldau.client.admin.configs import AlterConfig, AlterOperation, ConfigEntry
from moldau.config.definition import ConfigSource
from moldau.pipelines.mirror.config.flow import Flow, TopicSelection
from moldau.pipelines.mirror.config.properties import read_config
from moldau.pipelines.mirror.flows.topic_settings import config_changes, effective_changes, target_acls
from moldau.pipelines.mirror.flows.topics import creation_configs


def flow(**more: str) -> Flow:
    base = {"clusters": "us,eu", "us.bootstrap.servers": "x:1", "eu.bootstrap.servers": "y:1"}
    return read_config(base | {"us->eu.enabled": "true"} | more).flow("us->eu")


def entry(name: str, value: str, source: ConfigSource, *, sensitive: bool = False) -> ConfigEntry:
    return ConfigEntry(name, value, source, False, sensitive, (), None)


TOPIC, DEFAULT = ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DEFAULT_CONFIG
ENTRIES = [
    entry("retention.ms", "1", TOPIC),
    entry("cleanup.policy", "delete", DEFAULT),
    entry("min.insync.replicas", "2", TOPIC),
    entry("segment.bytes", "5", ConfigSource.STATIC_BROKER_CONFIG),
    entry("secret", "x", TOPIC, sensitive=True),
]


def test_own_values_are_copied_and_defaults_removed() -> None:
    mirror = flow()
    assert config_changes(mirror, TopicSelection(mirror), ENTRIES) == [
        AlterConfig("retention.ms", AlterOperation.SET, "1"),
        AlterConfig("cleanup.policy", AlterOperation.DELETE),
    ]
    assert creation_configs(mirror, TopicSelection(mirror), ENTRIES) == {"retention.ms": "1"}


def test_only_configs_that_differ_on_the_target_are_altered() -> None:
    mirror = flow()
    wanted = config_changes(mirror, TopicSelection(mirror), ENTRIES)
    equal = [entry("retention.ms", "1", TOPIC), entry("cleanup.policy", "compact", DEFAULT)]
    assert effective_changes(wanted, equal) == []
    manual = [entry("retention.ms", "2", TOPIC), entry("cleanup.policy", "delete", TOPIC)]
    assert effective_changes(wanted, manual) == wanted
    # A default of the target that happens to be equal is not a value of the topic.
    assert effective_changes(wanted, [entry("retention.ms", "1", DEFAULT)]) == wanted[:1]


def test_defaults_of_the_source_are_copied_on_request() -> None:
    mirror = flow(**{"use.defaults.from": "source", "config.properties.exclude": "retention.*"})
    assert config_changes(mirror, TopicSelection(mirror), ENTRIES) == [
        AlterConfig("cleanup.policy", AlterOperation.SET, "delete"),
        AlterConfig("min.insync.replicas", AlterOperation.SET, "2"),
    ]


def acl(
    name: str,
    operation: AclOperation,
    permission: PermissionType = PermissionType.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, name, pattern, "User:alice", "*", operation, permission)


def test_acls_allow_reading_only() -> None:
    found = target_acls(
        TopicSelection(flow()),
        [
            acl("orders", AclOperation.READ),
            acl("orders", AclOperation.ALL),
            acl("orders", AclOperation.WRITE),
            acl("orders", AclOperation.WRITE, PermissionType.DENY),
            acl("ord", AclOperation.READ, pattern=PatternType.PREFIXED),
            acl("eu.orders", AclOperation.READ),
            acl("__internal", AclOperation.READ),
        ],
    )
    assert found == [
        acl("us.orders", AclOperation.READ),
        acl("us.orders", AclOperation.READ),
        acl("us.orders", AclOperation.WRITE, PermissionType.DENY),
    ]
