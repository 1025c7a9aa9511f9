"""Secured clusters: logins, secrets by a config provider, and ACLs that follow the source."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer

from moldau.client.admin.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from tests.harness.mirror import MirrorProcess, mm2_properties
from tests.harness.nodes.authorized import (
    ADMIN,
    AuthorizedCluster,
    admin_client,
    authorized_cluster,
    java_login,
    librdkafka_login,
    password_of,
)
from tests.harness.waiting import eventually


def acl(topic: str, operation: AclOperation, *, allow: bool = True) -> AclBinding:
    permission = PermissionType.ALLOW if allow else PermissionType.DENY
    return AclBinding(
        ResourceType.TOPIC, topic, PatternType.LITERAL, "User:alice", "*", operation, permission
    )


def acls_of(admin: AdminClient, topic: str) -> set[AclBinding]:
    wanted = AclBindingFilter(resource_type=ResourceType.TOPIC, resource_name=topic)
    return set(admin.describe_acls(wanted))


def test_logins_secrets_and_acls(tmp_path: Path) -> None:
    config = authorized_cluster(["alice"])
    with AuthorizedCluster(config=config) as a, AuthorizedCluster(config=config) as b:
        source, target = a.bootstrap_servers, b.bootstrap_servers
        with admin_client(source) as admin_a, admin_client(target) as admin_b:
            checked(admin_a.create_topics([NewTopic("guarded", 1)]))
            bindings = [
                acl("guarded", AclOperation.READ),
                acl("guarded", AclOperation.WRITE),
                acl("guarded", AclOperation.DELETE, allow=False),
                acl("other", AclOperation.READ),
            ]
            checked(admin_a.create_acls(bindings))
            secrets = tmp_path / "secrets.properties"
            jaas = java_login(ADMIN)["sasl.jaas.config"].replace(password_of(ADMIN), "${file:SECRETS:admin}")
            secrets.write_text(f"admin={password_of(ADMIN)}\n")
            login = java_login(ADMIN) | {"sasl.jaas.config": jaas.replace("SECRETS", str(secrets))}
            settings = {
                "a->b.topics": "guarded",
                "config.providers": "file",
                "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
                "sync.topic.acls.interval.seconds": "1",
                **login,
            }
            with MirrorProcess(tmp_path, mm2_properties(source, target, settings)) as mirror:
                wanted = {
                    acl("a.guarded", AclOperation.READ),
                    acl("a.guarded", AclOperation.DELETE, allow=False),
                }
                eventually(lambda: acls_of(admin_b, "a.guarded") == wanted, what=mirror.log[-2000:])
                checked(admin_a.create_acls([acl("guarded", AclOperation.ALL)]))
                checked(admin_a.create_acls([acl("guarded", AclOperation.DESCRIBE)]))
                wanted.add(acl("a.guarded", AclOperation.DESCRIBE))
                eventually(lambda: acls_of(admin_b, "a.guarded") == wanted, what=mirror.log[-2000:])
                producer = Producer({"bootstrap.servers": source, **librdkafka_login(ADMIN)})
                producer.produce("guarded", b"x", partition=0)
                assert producer.flush(30) == 0
                eventually(lambda: _end(admin_b, "a.guarded") == 1, what=mirror.log[-2000:])
            assert acls_of(admin_b, "a.other") == set()
            assert password_of(ADMIN) not in mirror.log


def _end(admin: AdminClient, topic: str) -> int:
    from moldau.base.ids import TopicPartition
    from moldau.client.admin.offsets import OffsetSpec

    where = TopicPartition(topic, 0)
    return int(checked(admin.list_offsets({where: OffsetSpec.LATEST}))[where].offset)
