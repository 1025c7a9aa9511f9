"""Delegation tokens: lifetimes, who may renew and expire them, and their removal by the periodic task."""

from __future__ import annotations

import hashlib
import hmac
from functools import partial

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.security.tokens import (
    MAX_REMOVALS,
    create_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from moldau.metadata.features import METADATA_VERSION
from moldau.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from moldau.protocol.schema import encode_bytes
from moldau.protocol.stored.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord
from moldau.security.principal import KafkaPrincipal
from tests.unit.controller.harness import Cluster

ALICE, BOB, CAROL = (KafkaPrincipal("User", name) for name in ("alice", "bob", "carol"))
SECRET = "the secret of the cluster"
MAX_LIFETIME_MS, EXPIRY_MS, CHECK_MS = 10_000, 4_000, 1_000


@pytest.fixture
def cluster() -> Cluster:
    return cluster_with(SECRET)


def cluster_with(secret: str | None, **levels: int) -> Cluster:
    settings = {} if secret is None else {"delegation_token_secret_key": secret}
    return Cluster(
        brokers=(),
        levels={METADATA_VERSION: levels["version"]} if levels else None,
        delegation_token_max_lifetime_ms=MAX_LIFETIME_MS,
        delegation_token_expiry_time_ms=EXPIRY_MS,
        delegation_token_expiry_check_interval_ms=CHECK_MS,
        **settings,
    )


def create(
    cluster: Cluster,
    requester: KafkaPrincipal = ALICE,
    *renewers: KafkaPrincipal,
    owner: KafkaPrincipal | None = None,
    lifetime_ms: int = -1,
    version: int = -1,
) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else owner.type,
        owner_principal_name=None if owner is None else owner.name,
        renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name, _ in renewers],
        max_lifetime_ms=lifetime_ms,
    )
    return cluster.decide(partial(create_delegation_token, requester=requester), request, version)


def renew(cluster: Cluster, token: bytes, requester: KafkaPrincipal = ALICE, period_ms: int = -1) -> int:
    request = RenewDelegationTokenRequest(hmac=token, renew_period_ms=period_ms)
    response = cluster.decide(partial(renew_delegation_token, requester=requester), request)
    return response.expiry_timestamp_ms - cluster.now


def expire(cluster: Cluster, token: bytes, requester: KafkaPrincipal = ALICE, period_ms: int = -1) -> int:
    request = ExpireDelegationTokenRequest(hmac=token, expiry_time_period_ms=period_ms)
    response = cluster.decide(partial(expire_delegation_token, requester=requester), request)
    return response.expiry_timestamp_ms - cluster.now


def stored(cluster: Cluster, token_id: str) -> DelegationTokenRecord:
    return cluster.controller.image.delegation_tokens[token_id]


class TestCreation:
    def test_the_secret_is_the_hmac_of_the_id_and_is_not_stored(self, cluster: Cluster) -> None:
        token = create(cluster, ALICE, BOB)
        assert token.error_code == ErrorCode.NONE
        assert token.hmac == hmac.new(SECRET.encode(), token.token_id.encode(), hashlib.sha512).digest()
        assert stored(cluster, token.token_id) == DelegationTokenRecord(
            owner="User:alice",
            requester="User:alice",
            renewers=["User:bob"],
            issue_timestamp=cluster.now,
            max_timestamp=cluster.now + MAX_LIFETIME_MS,
            expiration_timestamp=cluster.now + EXPIRY_MS,
            token_id=token.token_id,
        )
        assert (token.principal_type, token.principal_name) == ("User", "alice")
        assert str(token.hmac) not in repr(token)

    def test_the_owner_may_be_another_than_the_requester(self, cluster: Cluster) -> None:
        token = create(cluster, ALICE, owner=BOB)
        record = stored(cluster, token.token_id)
        assert (record.owner, record.requester) == ("User:bob", "User:alice")
        assert (token.principal_name, token.token_requester_principal_name) == ("bob", "alice")

    def test_old_versions_do_not_name_the_requester(self, cluster: Cluster) -> None:
        token = create(cluster, version=2)
        assert token.token_requester_principal_name == ""
        assert encode_bytes(token, 2)

    @pytest.mark.parametrize(
        ("asked_ms", "max_ms", "expiry_ms"), [(2_000, 2_000, 2_000), (99_999, 10_000, 4_000)]
    )
    def test_a_requested_lifetime_can_only_shorten_the_configured_one(
        self, cluster: Cluster, asked_ms: int, max_ms: int, expiry_ms: int
    ) -> None:
        token = create(cluster, lifetime_ms=asked_ms)
        assert token.max_timestamp_ms - cluster.now == max_ms
        assert token.expiry_timestamp_ms - cluster.now == expiry_ms

    def test_renewers_must_be_users(self, cluster: Cluster) -> None:
        token = create(cluster, ALICE, KafkaPrincipal("Group", "all"))
        assert (token.error_code, token.token_id, token.hmac) == (ErrorCode.INVALID_PRINCIPAL_TYPE, "", b"")
        assert cluster.records == []

    def test_without_a_secret_there_are_no_tokens(self) -> None:
        disabled = cluster_with(None)
        assert create(disabled).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        for change in (renew, expire):
            with pytest.raises(KafkaError) as refused:
                change(disabled, b"x")
            assert refused.value.code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED

    def test_an_old_metadata_version_has_no_tokens(self) -> None:
        assert create(cluster_with(SECRET, version=13)).error_code == ErrorCode.UNSUPPORTED_VERSION


class TestRenewal:
    def test_owner_and_renewers_may_renew_up_to_the_max_timestamp(self, cluster: Cluster) -> None:
        token = create(cluster, ALICE, BOB)
        cluster.now += 3_000
        assert renew(cluster, token.hmac) == EXPIRY_MS
        assert renew(cluster, token.hmac, BOB, period_ms=500) == 500
        assert renew(cluster, token.hmac, BOB, period_ms=EXPIRY_MS + 1) == EXPIRY_MS
        cluster.now += 4_000
        assert renew(cluster, token.hmac) == 3_000
        assert stored(cluster, token.token_id).expiration_timestamp == token.max_timestamp_ms

    def test_others_may_not_also_not_the_requester(self, cluster: Cluster) -> None:
        token = create(cluster, CAROL, owner=ALICE)
        for change in (renew, expire):
            with pytest.raises(KafkaError) as refused:
                change(cluster, token.hmac, CAROL)
            assert refused.value.code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH

    def test_an_unknown_hmac_is_not_found(self, cluster: Cluster) -> None:
        create(cluster)
        for change in (renew, expire):
            with pytest.raises(KafkaError) as refused:
                change(cluster, b"?" * 64)
            assert refused.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND

    def test_an_expired_token_is_not_renewed(self, cluster: Cluster) -> None:
        token = create(cluster)
        cluster.now += EXPIRY_MS
        assert renew(cluster, token.hmac) == EXPIRY_MS
        cluster.now += EXPIRY_MS + 1
        with pytest.raises(KafkaError) as refused:
            renew(cluster, token.hmac)
        assert refused.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED


class TestExpiry:
    def test_a_negative_period_removes_the_token(self, cluster: Cluster) -> None:
        token = create(cluster)
        assert expire(cluster, token.hmac) == 0
        assert cluster.records == [RemoveDelegationTokenRecord(token_id=token.token_id)]
        assert cluster.controller.image.delegation_tokens == {}
        with pytest.raises(KafkaError) as refused:
            expire(cluster, token.hmac)
        assert refused.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND

    def test_a_period_sets_when_the_token_expires(self, cluster: Cluster) -> None:
        token = create(cluster, ALICE, BOB)
        assert expire(cluster, token.hmac, BOB, period_ms=7_000) == 7_000
        assert expire(cluster, token.hmac, BOB, period_ms=2**63 - 1) == MAX_LIFETIME_MS
        assert expire(cluster, token.hmac, period_ms=0) == 0
        cluster.now += 1
        with pytest.raises(KafkaError) as refused:
            expire(cluster, token.hmac, period_ms=5)
        assert refused.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED
        assert expire(cluster, token.hmac, period_ms=-1) == 0

    def test_the_periodic_task_removes_expired_tokens(self, cluster: Cluster) -> None:
        short, long = create(cluster, lifetime_ms=500), create(cluster)
        cluster.now += CHECK_MS
        assert not cluster.tick()
        assert list(cluster.controller.image.delegation_tokens) == [long.token_id]
        assert cluster.records == [RemoveDelegationTokenRecord(token_id=short.token_id)]
        assert not cluster.tick()
        assert cluster.records == []

    def test_one_step_removes_a_bounded_number(self, cluster: Cluster) -> None:
        for _ in range(MAX_REMOVALS + 1):
            create(cluster, lifetime_ms=1)
        cluster.now += CHECK_MS
        assert cluster.tick()
        assert len(cluster.controller.image.delegation_tokens) == 1
        assert not cluster.tick()
        assert cluster.controller.image.delegation_tokens == {}

    def test_tokens_are_found_by_hmac_after_others_were_removed(self, cluster: Cluster) -> None:
        tokens = [create(cluster) for _ in range(5)]
        for token in tokens[:4]:
            expire(cluster, token.hmac)
        assert renew(cluster, tokens[4].hmac) == EXPIRY_MS
