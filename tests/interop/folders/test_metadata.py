"""The metadata log of a folder used by both brokers: record types, snapshots, feature levels, trimming."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from moldau.config.properties import load_properties
from moldau.metadata.features import FEATURES, default_levels
from moldau.metadata.records import RECORD_TYPES
from moldau.protocol.stored import metadata as stored
from moldau.server.dispatch.apis import served_apis
from moldau.server.settings import BROKER
from tests.harness.apache.shared_folder import APACHE, MOLDAU, SharedFolder
from tests.harness.folders.inventory import announced_apis, take_inventory
from tests.harness.folders.metadata_folder import (
    append_records,
    lasting_records,
    make_snapshot,
    records_of_every_type,
)
from tests.harness.nodes.node import running_node
from tests.harness.waiting import eventually
from tests.harness.wire.requests import assert_serves, create_and_wait

pytestmark = [pytest.mark.interop, pytest.mark.timeout(150)]

CONFIG: dict[str, str | int | bool] = {
    "metadata.log.max.record.bytes.between.snapshots": 1,
    "broker.session.timeout.ms": 1000,
    "broker.heartbeat.interval.ms": 200,
}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module", autouse=True)
def aging(tmp_path_factory: pytest.TempPathFactory, libs: Path) -> Iterator[SharedFolder]:
    """Apache Kafka on a folder whose log it trims a minute after its start, while other tests run."""
    config = {**CONFIG, "metadata.max.retention.bytes": 1}
    with SharedFolder(tmp_path_factory.mktemp("aging"), libs, config) as folder:
        folder.format(APACHE)
        bootstrap = folder.start(APACHE)
        for number in range(3):
            create_and_wait(bootstrap, f"orders-{number}")
        yield folder


@pytest.fixture
def shared(tmp_path: Path, libs: Path) -> Iterator[SharedFolder]:
    with SharedFolder(tmp_path, libs, CONFIG) as folder:
        yield folder


def secure(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    rules = [
        AclBinding(
            ResourceType.TOPIC,
            name,
            pattern,
            f"User:{user}",
            "*",
            AclOperation.READ,
            permission,
        )
        for name, pattern in (("orders", ResourcePatternType.LITERAL), ("o", ResourcePatternType.PREFIXED))
        for user, permission in (("alice", AclPermissionType.ALLOW), ("bob", AclPermissionType.DENY))
    ]
    for future in admin.create_acls(rules).values():
        future.result(20)
    login = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 5000)
    changes = [UserScramCredentialUpsertion(user, login, b"secret") for user in ("alice", "bob")]
    for future in admin.alter_user_scram_credentials(changes).values():
        future.result(20)


def security(bootstrap: str) -> tuple[list[str], list[str]]:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    rules = admin.describe_acls(everything).result(20)
    logins = admin.describe_user_scram_credentials().result(20)
    described = [
        f"{user}: {[(str(each.mechanism), each.iterations) for each in found.scram_credential_infos]}"
        for user, found in logins.items()
    ]
    return sorted(map(str, rules)), sorted(described)


def snapshot_of(shared: SharedFolder, broker: str) -> list[str]:
    """Start a broker, make it write a snapshot, stop it, and return the snapshot's records except its own."""
    make_snapshot(shared.start(broker), shared.dirs[0])
    shared.stop()
    return lasting_records(shared.dirs[0])


def test_every_metadata_record_type_is_kept(shared: SharedFolder, tmp_path: Path) -> None:
    records = records_of_every_type()
    assert {type(record) for record in records} >= set(RECORD_TYPES.values()) - {stored.FeatureLevelRecord}
    shared.reconfigure(AUTHORIZER)
    shared.format(APACHE)
    bootstrap = shared.start(APACHE)
    create_and_wait(bootstrap, "orders")
    secure(bootstrap)
    shared.stop()
    append_records(shared.dirs[0], records)
    bootstrap = shared.start(APACHE)
    expected_security = security(bootstrap)
    assert (len(expected_security[0]), len(expected_security[1])) == (5, 3)
    shared.stop()
    shared.reconfigure(dict.fromkeys(AUTHORIZER))
    keep(shared, tmp_path / "kept")
    by_apache = snapshot_of(shared, APACHE)
    kinds = {record.partition("(")[0] for record in by_apache}
    assert kinds >= {
        "AccessControlEntryRecord",
        "UserScramCredentialRecord",
        "DelegationTokenRecord",
        "FeatureLevelRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
    }
    bring_back(shared, tmp_path / "kept")
    for broker in (MOLDAU, APACHE, MOLDAU, APACHE):
        assert snapshot_of(shared, broker) == by_apache, broker
    shared.reconfigure(AUTHORIZER)
    assert security(shared.start(APACHE)) == expected_security
    shared.stop()


@pytest.mark.parametrize("first", [APACHE, MOLDAU])
def test_moldau_and_apache_kafka_elect_the_same_leaders(
    first: str, shared: SharedFolder, tmp_path: Path
) -> None:
    """Compare leaders, ISRs, eligible leader replicas and epochs on the same folder after a clean stop."""
    shared.format(first)
    bootstrap = shared.start(first)
    create_and_wait(bootstrap, "orders", 2)
    assert_serves(bootstrap, "orders")
    shared.stop()
    keep(shared, tmp_path / "kept")
    found = []
    for broker in (APACHE, MOLDAU):
        bring_back(shared, tmp_path / "kept")
        bootstrap = shared.start(broker)
        take_inventory(bootstrap)
        make_snapshot(bootstrap, shared.dirs[0])
        shared.kill()
        found.append([r for r in lasting_records(shared.dirs[0], leaders=True) if "PartitionRecord" in r])
    assert found[1] == found[0]


def keep(shared: SharedFolder, place: Path) -> None:
    for folder in shared.dirs:
        shutil.copytree(folder, place / folder.name)


def bring_back(shared: SharedFolder, place: Path) -> None:
    for folder in shared.dirs:
        shutil.rmtree(folder)
        shutil.copytree(place / folder.name, folder)


def test_feature_levels_are_kept_and_unserved_apis_are_not_announced(shared: SharedFolder) -> None:
    shared.format(APACHE)
    theirs = take_inventory(shared.start(APACHE))["features"]
    shared.stop()
    bootstrap = shared.start(MOLDAU)
    assert take_inventory(bootstrap)["features"] == theirs
    assert theirs["share.version"] == theirs["streams.version"] == 1
    assert announced_apis(bootstrap) == set(served_apis(BROKER))
    create_and_wait(bootstrap, "orders")
    shared.stop()
    assert take_inventory(shared.start(APACHE))["features"] == theirs
    shared.stop()


def test_format_sets_the_feature_levels_of_served_apis(
    shared: SharedFolder, tmp_path: Path, libs: Path
) -> None:
    shared.format(MOLDAU)
    ours = take_inventory(shared.start(MOLDAU))["features"]
    shared.stop()
    assert take_inventory(shared.start(APACHE))["features"] == ours
    shared.stop()
    with SharedFolder(tmp_path / "other", libs, CONFIG) as other:
        other.format(APACHE)
        theirs = take_inventory(other.start(APACHE))["features"]
    for name, level in theirs.items():
        assert ours.get(name, 0) == min(level, FEATURES[name].served), name
    assert {name: level for name, level in default_levels().items() if level} == {
        name: level for name, level in ours.items() if name != "kraft.version"
    }


def identity(shared: SharedFolder) -> list[Any]:
    """Return the values that must not change after formatting."""
    return [load_properties(each / "meta.properties") for each in shared.dirs] + [
        (each / "bootstrap.checkpoint").read_bytes()
        for each in shared.dirs
        if (each / "bootstrap.checkpoint").exists()
    ]


def first_offset(shared: SharedFolder) -> int:
    """Return the offset of the oldest snapshot: the log before it is not needed."""
    return min(int(path.name[:20]) for path in shared.metadata.glob("*.checkpoint"))


async def trim(shared: SharedFolder) -> None:
    """Trim the log at once instead of once a minute."""
    async with running_node(shared.folder, load_properties(shared.file)) as node:
        await node.metadata.maintain()


@pytest.mark.parametrize("formatted", [APACHE, MOLDAU])
def test_a_log_trimmed_by_moldau_is_read_by_apache_kafka(formatted: str, shared: SharedFolder) -> None:
    shared.reconfigure({"metadata.max.retention.bytes": 1})
    shared.format(formatted)
    formatted_as = identity(shared)
    bootstrap = shared.start(formatted)
    create_and_wait(bootstrap, "orders")
    shared.stop()
    for turn in range(2):
        asyncio.run(trim(shared))
        assert first_offset(shared) > 0
        bootstrap = shared.start(APACHE)
        create_and_wait(bootstrap, f"turn-{turn}")
        before = take_inventory(bootstrap)
        shared.stop()
    bootstrap = shared.start(MOLDAU)
    now = take_inventory(bootstrap)
    assert list(now["topics"]) == list(before["topics"]) == ["orders", "turn-0", "turn-1"]
    assert_serves(bootstrap, "orders")
    shared.stop()
    assert identity(shared) == formatted_as


def test_a_log_trimmed_by_apache_kafka_is_read_by_moldau(aging: SharedFolder) -> None:
    shared = aging
    before = take_inventory(shared.bootstrap_servers)
    eventually(lambda: first_offset(shared) > 0, timeout=90, what="the first snapshot is deleted")
    shared.kill()
    bootstrap = shared.start(MOLDAU)
    now = take_inventory(bootstrap)
    assert {name: topic["id"] for name, topic in now["topics"].items()} == {
        name: topic["id"] for name, topic in before["topics"].items()
    }
    create_and_wait(bootstrap, "more")
    shared.stop()
    assert list(take_inventory(shared.start(APACHE))["topics"]) == sorted([*before["topics"], "more"])
    shared.stop()
