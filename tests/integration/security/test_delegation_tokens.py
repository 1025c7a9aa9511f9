"""Delegation tokens on real nodes: created over SASL, used to log in, renewed, expired, and removed in time.

librdkafka has no `tokenauth`, so logins with tokens use Moldau's own client. The controller is a process of
its own: requests are forwarded in Envelopes, which carry whether the client logged in with a token.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.admin.client import AdminClient
from moldau.client.admin.delegation_tokens import DelegationToken
from moldau.client.admin.scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from moldau.client.wire.settings import ClientSettings
from moldau.security.principal import KafkaPrincipal
from moldau.testing import Cluster
from tests.harness.nodes.sasl import sasl_config, start_several
from tests.harness.tools import run_tool
from tests.harness.waiting import eventually

ALICE, BOB = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")
TOKENS = {
    "delegation.token.secret.key": "secret-of-the-cluster",
    "delegation.token.expiry.check.interval.ms": 1_000,
}
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = sasl_config("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", extra=TOKENS)
    cluster = Cluster(brokers=1, controllers=1, config=config)
    try:
        yield start_several(cluster)
        logs = "".join(node.log_file.read_text() for node in cluster.nodes)
        assert "secret-of-the-cluster" not in logs
        assert "Traceback" not in logs
    finally:
        cluster.close()


def password_login(user: str, mechanism: str = "PLAIN", module: str = PLAIN_MODULE) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{user}-secret";',
    }


def token_login(token: DelegationToken, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
    return login_with(token.token_info.token_id, token.hmac_as_base64_string, mechanism)


def login_with(token_id: str, hmac: str, mechanism: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{SCRAM_MODULE} required username="{token_id}" password="{hmac}" '
        'tokenauth="true";',
    }


def connect(cluster: Cluster, login: dict[str, str]) -> AdminClient:
    properties = {"bootstrap.servers": cluster.bootstrap_servers, **login}
    return AdminClient(ClientSettings.from_properties(properties))


def logs_in(cluster: Cluster, login: dict[str, str]) -> bool:
    with connect(cluster, login) as client:
        try:
            return client.describe_cluster().nodes != []
        except KafkaError as error:
            assert error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
            return False


@pytest.fixture
def alice(cluster: Cluster) -> Iterator[AdminClient]:
    with connect(cluster, password_login("alice")) as client:
        yield client


@pytest.fixture
def bob(cluster: Cluster) -> Iterator[AdminClient]:
    with connect(cluster, password_login("bob")) as client:
        yield client


def refusal(call: object) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        call()  # type: ignore[operator]
    return refused.value.code


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_new_token_logs_in_at_once(cluster: Cluster, alice: AdminClient, mechanism: str) -> None:
    token = alice.create_delegation_token(renewers=[BOB])
    assert (token.token_info.owner, token.token_info.token_requester) == (ALICE, ALICE)
    assert logs_in(cluster, token_login(token, mechanism))
    wrong = DelegationToken(token.token_info, bytes(64))
    assert not logs_in(cluster, token_login(wrong, mechanism))


def test_a_client_with_a_token_may_not_ask_for_tokens(cluster: Cluster, alice: AdminClient) -> None:
    token = alice.create_delegation_token()
    with connect(cluster, token_login(token)) as client:
        assert refusal(client.create_delegation_token) is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert refusal(client.describe_delegation_token) is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert (
            refusal(lambda: client.renew_delegation_token(token.hmac))
            is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        )


def test_owner_and_renewers_renew_a_token(alice: AdminClient, bob: AdminClient) -> None:
    token = alice.create_delegation_token(renewers=[BOB], max_lifetime_ms=3_600_000)
    before = time.time() * 1000
    assert bob.renew_delegation_token(token.hmac, renew_time_period_ms=60_000) >= before + 59_000
    assert alice.renew_delegation_token(token.hmac) == token.token_info.max_timestamp
    own = alice.create_delegation_token()
    assert refusal(lambda: bob.renew_delegation_token(own.hmac)) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_an_expired_token_is_gone(cluster: Cluster, alice: AdminClient) -> None:
    token = alice.create_delegation_token()
    alice.expire_delegation_token(token.hmac)
    # The controller answers before the broker has the removal, as in Kafka.
    eventually(lambda: not logs_in(cluster, token_login(token)), timeout=20, what="the token is gone")
    assert refusal(lambda: alice.expire_delegation_token(token.hmac)) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_the_controller_removes_expired_tokens(cluster: Cluster, alice: AdminClient) -> None:
    token = alice.create_delegation_token(max_lifetime_ms=1)
    ids = lambda: [each.token_info.token_id for each in alice.describe_delegation_token()]  # noqa: E731
    eventually(lambda: token.token_info.token_id not in ids(), timeout=20, what="the token is removed")
    assert not logs_in(cluster, token_login(token))


def test_a_connection_does_not_outlive_its_token(cluster: Cluster, alice: AdminClient) -> None:
    token = alice.create_delegation_token(max_lifetime_ms=1_000)
    with connect(cluster, token_login(token)) as client:
        assert client.describe_cluster().nodes

        def is_refused() -> bool:
            try:
                client.describe_cluster()
            except KafkaError as error:
                return error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
            return False

        eventually(is_refused, timeout=30, what="the connection is closed and a new login fails")


def test_clients_see_their_own_tokens(alice: AdminClient, bob: AdminClient) -> None:
    own, shared = alice.create_delegation_token(), alice.create_delegation_token(renewers=[BOB])
    seen = bob.describe_delegation_token([BOB])
    assert shared in seen
    assert own not in seen
    assert {own, shared} <= set(alice.describe_delegation_token([ALICE]))


def test_tokens_are_refused_without_a_login() -> None:
    config = {"delegation.token.secret.key": "secret-of-the-cluster"}
    with Cluster(config=config) as open_cluster, AdminClient(open_cluster.bootstrap_servers) as client:
        assert refusal(client.create_delegation_token) is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_without_a_secret_key_tokens_are_disabled() -> None:
    with (
        Cluster(config=sasl_config()) as without_key,
        connect(without_key, password_login("alice")) as client,
    ):
        assert refusal(client.create_delegation_token) is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert refusal(client.describe_delegation_token) is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_the_tool_creates_a_token_that_logs_in(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "alice.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in password_login("alice").items()))
    options = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(file))
    done = run_tool("kafka-delegation-tokens", *options, "--create", "--max-life-time-period", "-1")
    assert done.code == 0, done.err
    token_id, hmac = done.lines[-1].split()[:2]
    login = login_with(token_id, hmac, "SCRAM-SHA-512")
    assert logs_in(cluster, login)
    expired = run_tool(
        "kafka-delegation-tokens", *options, "--expire", "--expiry-time-period", "-1", "--hmac", hmac
    )
    assert expired.code == 0, expired.err
    assert not logs_in(cluster, login)


def test_tokens_and_users_survive_a_snapshot(tmp_path: Path) -> None:
    config = sasl_config(
        "PLAIN,SCRAM-SHA-256", extra={**TOKENS, "metadata.log.max.record.bytes.between.snapshots": 1}
    )
    with Cluster(config=config, data_dir=tmp_path) as cluster:
        with connect(cluster, password_login("alice")) as client:
            token = client.create_delegation_token()
            info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
            client.alter_user_scram_credentials([UserScramCredentialUpsertion("carol", info, "carol-secret")])

            def has_snapshot() -> bool:
                # A commit begins a snapshot unless another one is being written.
                client.alter_user_scram_credentials([UserScramCredentialUpsertion("dave", info, "x")])
                return has_snapshot_of(tmp_path, b"carol")

            eventually(has_snapshot, timeout=30, what="a snapshot")
        cluster.nodes[0].restart()
        assert logs_in(cluster, token_login(token))
        carol = password_login("carol", "SCRAM-SHA-256", SCRAM_MODULE)
        assert logs_in(cluster, carol)


def has_snapshot_of(folder: Path, text: bytes) -> bool:
    snapshots = [path for path in folder.rglob("*.checkpoint") if path.parent.name.startswith("__cluster")]
    return any(text in path.read_bytes() for path in snapshots)
