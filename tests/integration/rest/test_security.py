"""Logins: the caller's credentials are passed to Kafka, so its ACLs apply; authentication of the proxy."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator

import pytest

from moldau.client.admin.scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from moldau.testing import Cluster
from tests.harness.nodes.authorized import ADMIN, admin_client, authorized_nodes, password_of
from tests.harness.rest_proxy import V2, Api, embedded, rest_proxy
from tests.harness.waiting import eventually

PROPAGATE = {"confluent_rest_auth_propagate_method": "SASL", "client_security_protocol": "SASL_PLAINTEXT"}
RECORDS = {"records": [{"value": 1}]}


def basic(port: int, user: str, password: str | None = None) -> Api:
    text = f"{user}:{password_of(user) if password is None else password}"
    return Api(port, {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"})


def produce(api: Api, topic: str) -> tuple[int, int | None]:
    """Return the status and the error code of the record or of the request."""
    answer = api("POST", f"/topics/{topic}", RECORDS, embedded("json"))
    if "offsets" in answer.body:
        return answer.status, answer.body["offsets"][0]["error_code"]
    return answer.error


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A proxy that passes logins on; ann may use the topic `open`, bob nothing."""
    with (
        Cluster(config=authorized_nodes(["ann", "bob"])) as cluster,
        rest_proxy(cluster.bootstrap_servers, **PROPAGATE, client_sasl_mechanism="PLAIN") as rest,
    ):
        admin = basic(rest.port, ADMIN)
        id = admin("GET", "/v3/clusters").body["data"][0]["cluster_id"]
        admin("POST", f"/v3/clusters/{id}/topics", {"topic_name": "open"})
        acl = {"pattern_type": "LITERAL", "principal": "User:ann", "host": "*", "permission": "ALLOW"}
        for resource, name, operation in (
            ("TOPIC", "open", "WRITE"),
            ("TOPIC", "open", "READ"),
            ("GROUP", "ann", "READ"),
        ):
            body = {**acl, "resource_type": resource, "resource_name": name, "operation": operation}
            assert admin("POST", f"/v3/clusters/{id}/acls", body).status == 201
        yield rest.port


def test_acls_apply_to_the_caller(port: int) -> None:
    ann, bob = basic(port, "ann"), basic(port, "bob")
    eventually(lambda: produce(ann, "open") == (200, None), timeout=20, what="ann may write")
    assert produce(bob, "open") in ((403, 40301), (404, 40401))
    assert ann("GET", "/topics").body == ["open"]
    assert bob("GET", "/topics").body == []


def test_wrong_or_missing_credentials_are_refused(port: int) -> None:
    for api in (basic(port, "ann", "wrong"), basic(port, "nobody"), Api(port)):
        refused = api("GET", "/topics")
        assert refused.error == (401, 40101)
        assert refused.headers["www-authenticate"].startswith("Basic")
        assert produce(api, "open") == (401, 40101)
    assert Api(port, {"Authorization": "Bearer x"})("GET", "/topics").error == (401, 40101)
    assert basic(port, "ann")("GET", "/topics").status == 200


def test_consumer_instances_belong_to_their_user(port: int) -> None:
    ann, bob = basic(port, "ann"), basic(port, "bob")
    produce(ann, "open")
    config = {"name": "one", "format": "json", "auto.offset.reset": "earliest"}
    assert ann("POST", "/consumers/ann", config, V2).status == 200
    path = "/consumers/ann/instances/one"
    assert ann("POST", f"{path}/subscription", {"topics": ["open"]}, V2).status == 204
    assert bob("GET", f"{path}/records", accept=embedded("json")).error == (404, 40403)
    assert bob("DELETE", path).error == (404, 40403)
    read = eventually(lambda: ann("GET", f"{path}/records", accept=embedded("json")).body, timeout=20)
    assert read[0]["value"] == 1
    assert ann("DELETE", path).status == 204


def test_streaming_reads_use_the_login_of_the_caller(port: int) -> None:
    ann, bob = basic(port, "ann"), basic(port, "bob")
    produce(ann, "open")
    id = basic(port, ADMIN)("GET", "/v3/clusters").body["data"][0]["cluster_id"]
    status, text, _ = ann.raw("GET", f"/v3/clusters/{id}/topics/open/records?limit=1")
    assert status == 200 and b'"data":1' in text
    assert bob("GET", f"/v3/clusters/{id}/topics/open/records").status in (403, 404)
    status, text, _ = bob.raw("GET", f"/v3/clusters/{id}/consumer-groups/ann/records?topics=open")
    assert b"40301" in text


def test_scram_passwords_are_passed_on() -> None:
    mechanism = "SCRAM-SHA-256"
    jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    nodes = authorized_nodes([], sasl_enabled_mechanisms=f"PLAIN,{mechanism}")
    nodes["listener.name.plaintext.scram-sha-256.sasl.jaas.config"] = jaas
    with Cluster(config=nodes) as cluster:
        with admin_client(cluster.bootstrap_servers) as admin:
            info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
            change = UserScramCredentialUpsertion("ann", info, "s-c-r-a-m")
            assert admin.alter_user_scram_credentials([change]) == {"ann": None}
        with rest_proxy(cluster.bootstrap_servers, **PROPAGATE, client_sasl_mechanism=mechanism) as rest:
            ann = basic(rest.port, "ann", "s-c-r-a-m")
            eventually(lambda: ann("GET", "/topics").status == 200, timeout=20)
            assert basic(rest.port, "ann", "other")("GET", "/topics").error == (401, 40101)


def test_the_clients_of_users_are_bounded() -> None:
    """More users than clients take turns; a user who has none at the moment gets new ones."""
    limits = {**PROPAGATE, "propagated_clients_max": 1, "client_sasl_mechanism": "PLAIN"}
    with (
        Cluster(config=authorized_nodes(["ann"])) as cluster,
        rest_proxy(cluster.bootstrap_servers, **limits) as rest,
    ):
        for user in (ADMIN, "ann", ADMIN, "ann"):
            assert basic(rest.port, user)("GET", "/topics").status == 200
        assert produce(basic(rest.port, ADMIN), "bounded") == (200, None)
        id = basic(rest.port, ADMIN)("GET", "/v3/clusters").body["data"][0]["cluster_id"]
        path = f"/v3/clusters/{id}/topics/bounded/records?follow=true"
        connection, response = basic(rest.port, ADMIN).open("GET", path)
        try:
            assert response.status == 200
            assert basic(rest.port, "ann")("GET", "/topics").error == (503, 50301)
        finally:
            response.close()
            connection.close()
        eventually(lambda: basic(rest.port, "ann")("GET", "/topics").status == 200, timeout=10)


def unsecured_token(user: str, lifetime_s: int = 600) -> str:
    """Return a token without a signature, which brokers accept unless they have keys."""
    now = int(time.time())
    parts = [{"alg": "none"}, {"sub": user, "iat": now, "exp": now + lifetime_s}]
    return "".join(
        base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") + "." for each in parts
    )


def test_bearer_tokens_are_passed_on() -> None:
    jaas = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
    nodes = authorized_nodes([], sasl_enabled_mechanisms="PLAIN,OAUTHBEARER")
    nodes["listener.name.plaintext.oauthbearer.sasl.jaas.config"] = jaas
    with (
        Cluster(config=nodes) as cluster,
        rest_proxy(cluster.bootstrap_servers, **PROPAGATE, client_sasl_mechanism="OAUTHBEARER") as rest,
    ):

        def bearer(token: str) -> Api:
            return Api(rest.port, {"Authorization": f"Bearer {token}"})

        assert produce(bearer(unsecured_token(ADMIN)), "tokens") == (200, None)
        assert produce(bearer(unsecured_token("ann")), "tokens") in ((403, 40301), (404, 40401))
        for bad in ("x", unsecured_token(ADMIN, -60)):
            refused = bearer(bad)("GET", "/topics")
            assert refused.error == (401, 40101)
            assert refused.headers["www-authenticate"] == "Bearer"
        assert basic(rest.port, ADMIN)("GET", "/topics").error == (401, 40101)


def test_users_of_the_proxy_itself() -> None:
    users = {
        "authentication_method": "BASIC",
        "authentication_user_ann": "secret",
        "authentication_user_bob": "secret",
    }
    with Cluster() as cluster, rest_proxy(cluster.bootstrap_servers, **users) as rest:
        assert rest("GET", "/topics").error == (401, 401)
        assert basic(rest.port, "ann", "wrong")("GET", "/topics").status == 401
        ann, bob = basic(rest.port, "ann", "secret"), basic(rest.port, "bob", "secret")
        assert ann("GET", "/topics").status == 200
        assert ann("POST", "/consumers/g", {"name": "one"}, V2).status == 200
        assert bob("GET", "/consumers/g/instances/one/assignments").error == (404, 40403)
        assert ann("DELETE", "/consumers/g/instances/one").status == 204
