"""Check the permissions of a client on topics and groups, and name the `kafka-acls` command that grants them.

Brokers report the permissions of the caller as authorized operations (KIP-430). Without DESCRIBE they do not
tell whether a topic exists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.moldau.doctor.findings import Finding, Level
from moldau.cli.moldau.doctor.principals import principal_of
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.coordinators import GROUP, ask_coordinator
from moldau.client.wire.errors import check
from moldau.client.wire.security import SecuritySettings
from moldau.client.wire.settings import Address, ClientSettings
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from moldau.security.acl.enums import AclOperation

Kind = Literal["topic", "group"]
#: The last version that answers for a group that does not exist.
_DESCRIBE_GROUPS = 5
_REFUSED: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED)
#: The uses of each kind: the operation, the sentence, and the option of kafka-acls that allows it.
_USES: Mapping[Kind, tuple[tuple[AclOperation, str, str], ...]] = {
    "topic": (
        (AclOperation.WRITE, "write to", "--producer"),
        (AclOperation.READ, "read from", "--operation Read --operation Describe"),
    ),
    "group": ((AclOperation.READ, "join and commit offsets of", "--operation Read"),),
}


@dataclass(frozen=True, slots=True)
class Checked:
    """A topic or group whose permissions are checked."""

    kind: Kind
    name: str

    @classmethod
    def topic(cls, name: str) -> Checked:
        return cls("topic", name)

    @classmethod
    def group(cls, name: str) -> Checked:
        return cls("group", name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


async def check_permissions(
    at: Address, security: SecuritySettings, timeout_ms: int, checked: Sequence[Checked]
) -> AsyncIterator[Finding]:
    """Yield a finding for each use of the checked topics and groups."""
    if not checked:
        return
    settings = ClientSettings((at,), client_id="moldau-doctor", api_timeout_ms=timeout_ms, security=security)
    cluster = Cluster(settings)
    try:
        for each in checked:
            for finding in await _check(cluster, each, at, principal_of(security)):
                yield finding
    finally:
        cluster.close()


async def _check(cluster: Cluster, checked: Checked, at: Address, principal: str) -> list[Finding]:
    try:
        allowed = await (_topic if checked.kind == "topic" else _group)(cluster, checked.name)
    except KafkaError as error:
        if error.code in _REFUSED:
            allowed = frozenset()
        elif error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return [Finding(Level.NOTE, f"The {checked} does not exist.", "Create it with kafka-topics.")]
        else:
            return [
                Finding(Level.PROBLEM, f"The {checked} cannot be examined: {error}", "See the broker's log.")
            ]
    return [_use(checked, at, principal, allowed, *use) for use in _USES[checked.kind]]


def _use(
    checked: Checked,
    at: Address,
    principal: str,
    allowed: frozenset[AclOperation],
    operation: AclOperation,
    does: str,
    option: str,
) -> Finding:
    if operation in allowed:
        return Finding(Level.GOOD, f"{principal} may {does} {checked}.")
    command = (
        f"kafka-acls --bootstrap-server {at} --command-config ADMIN.properties --add "
        f"--allow-principal '{principal}' {option} --{checked.kind} '{checked.name}'"
    )
    missing = f"{operation.name} on {checked.kind.upper()} {checked.name}"
    return Finding(
        Level.PROBLEM,
        f"{principal} may not {does} {checked}: {missing} is missing.",
        f"An administrator grants it: {command}",
    )


async def _topic(cluster: Cluster, name: str) -> frozenset[AclOperation]:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    answer: MetadataResponse = await cluster.ask_any(request)
    topic = answer.topics[0]
    check(topic.error_code)
    return _operations(topic.topic_authorized_operations)


async def _group(cluster: Cluster, name: str) -> frozenset[AclOperation]:
    def read(answer: DescribeGroupsResponse) -> frozenset[AclOperation]:
        check(answer.groups[0].error_code)
        return _operations(answer.groups[0].authorized_operations)

    request = DescribeGroupsRequest(groups=[name], include_authorized_operations=True)
    return await ask_coordinator(cluster, GROUP, name, request, read, newest=_DESCRIBE_GROUPS)


def _operations(mask: int) -> frozenset[AclOperation]:
    """Return the operations of a bit field (KIP-430); all, if the broker did not fill it in."""
    if mask < 0:
        return frozenset(AclOperation)
    return frozenset(operation for operation in AclOperation if mask >> operation & 1)
