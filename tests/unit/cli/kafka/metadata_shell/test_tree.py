"""The metadata as a tree."""

from __future__ import annotations

from moldau.base.ids import format_uuid
from moldau.cli.kafka.metadata_shell.commands import Shell
from moldau.cli.kafka.metadata_shell.tree import Root
from moldau.metadata.image import MetadataImage
from tests.unit.cli.kafka.metadata_shell.records import RECORDS, run
from tests.unit.metadata.builders import uid


def test_tree_equals_that_of_kafka(shell: Shell) -> None:
    assert run(shell, "ls /") == ["image", "local"]
    assert run(shell, "ls /image") == [
        "acls",
        "clientQuotas",
        "cluster",
        "configs",
        "delegationToken",
        "features",
        "producerIds",
        "provenance",
        "scram",
        "topics",
    ]
    assert run(shell, "cat /image/cluster/brokers/2") == [
        f"BrokerRegistration(id=2, epoch=10, incarnationId={format_uuid(uid(200))}, listeners=[Endpoint("
        "listenerName='PLAINTEXT', securityProtocol=PLAINTEXT, host='localhost', port=9092)], "
        "supportedFeatures={metadata.version: 7-30}, rack=Optional[r1], fenced=true, "
        "inControlledShutdown=false, isMigratingZkBroker=false, "
        f"directories=[{format_uuid(uid(102))}], cordonedDirectories=null)"
    ]
    assert run(shell, "cat /image/cluster/controllers/1") == [
        f"ControllerRegistration(id=1, incarnationId={format_uuid(uid(5))}, zkMigrationReady=false, "
        "listeners=[], supportedFeatures={})"
    ]
    assert run(shell, "cat /image/topics/byName/orders/1") == [
        f"PartitionRegistration(replicas=[1, 2], directories=[{format_uuid(uid(101))}, "
        f"{format_uuid(uid(102))}], isr=[1, 2], removingReplicas=[], addingReplicas=[], elr=[], "
        "lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)"
    ]
    assert run(shell, "tree /image/configs") == [
        "BROKER:",
        "  log.cleaner.threads:",
        "    2",
        "TOPIC:orders:",
        "  retention.ms:",
        "    5",
    ]
    assert run(shell, "tree /image/clientQuotas") == [
        "clientId(a\\(b)_user(<default>):",
        "  producer_byte_rate:",
        "    1.0E7",
    ]
    assert run(shell, f"cat /image/acls/byId/{format_uuid(uid(9))}") == [
        "StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:bob, "
        "host=*, operation=READ, permissionType=ALLOW]"
    ]
    assert run(shell, "cat /image/scram/SCRAM-SHA-256/bob") == [
        "ScramCredentialData(salt=01ff, storedKey=02, serverKey=03, iterations=4096)"
    ]
    assert run(shell, "cat /image/features/metadataVersion /image/producerIds/nextProducerId") == [
        "Optional[4.3-IV0]",
        "-1",
    ]
    assert run(shell, "cat /image/provenance") == [
        f"offset {len(RECORDS) - 1}, epoch 1, time 2023-11-14T22:13:20.84Z[UTC]"
    ]


def test_shortcuts_lead_into_the_image(shell: Shell) -> None:
    assert run(shell, "ls /brokers") == ["1", "2"]
    assert run(shell, "cat /topics/orders/0") == run(shell, "cat /image/topics/byName/orders/0")
    assert run(shell, "cat /topics/*/name") == ["orders", "other"]


def test_an_empty_image_has_the_same_tree() -> None:
    tree = Root(MetadataImage.empty(), -1).directory()
    empty = Shell(lambda: tree)
    assert run(empty, "cat /image/features/metadataVersion") == ["Optional.empty"]
    assert run(empty, "cat /image/provenance") == ["offset -1, epoch -1, time 1969-12-31T23:59:59.999Z[UTC]"]
    assert run(empty, "ls /brokers") == []
