"""TLS, certificates, passwords, tokens and ACLs, also of forwarded writes; a secured Kafka."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPSConnection, RemoteDisconnected
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from moldau.registry.wiring import create_service
from moldau.testing import Cluster
from tests.harness.registry.application import ask
from tests.harness.registry.instances import Instance, describe_group, instances
from tests.harness.security.certificates import Certificates
from tests.harness.waiting import eventually

STRING = {"schema": '"string"'}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def settings_of(name: str) -> dict[str, str]:
    return {
        "kafkastore.topic": f"_schemas.{name}",
        "schema.registry.group.id": name,
        "kafkagroup.heartbeat.interval.ms": "200",
    }


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def follower_and_leader(cluster: Cluster, group: str, running: list[Instance]) -> tuple[Instance, Instance]:
    def agreed() -> frozenset[str]:
        described = asyncio.run(describe_group(cluster.bootstrap_servers, group))
        ready = described.members == len(running) and described.state == "Stable"
        return described.leaders if ready else frozenset()

    [url] = eventually(agreed, what="a leader")
    [leader] = [each for each in running if each.url == url]
    [follower] = [each for each in running if each is not leader]
    return follower, leader


@pytest.fixture
def jaas(tmp_path: Path) -> dict[str, str]:
    """The environment with the JAAS file of Confluent's documentation."""
    (tmp_path / "password.properties").write_text(
        "admin: admin-secret,admin\nwriter: writer-secret,developer\nguest: guest-secret,visitor\n"
    )
    (tmp_path / "jaas.conf").write_text(
        "SchemaRegistry-Props {\n  org.eclipse.jetty.jaas.spi.PropertyFileLoginModule required\n"
        f'  file="{tmp_path}/password.properties"\n  debug="false";\n}};\n'
    )
    return {"SCHEMA_REGISTRY_OPTS": f"-Djava.security.auth.login.config={tmp_path}/jaas.conf"}


def test_tls_passwords_and_acls_also_of_forwarded_writes(
    cluster: Cluster, certificates: Certificates, jaas: dict[str, str]
) -> None:
    settings = {
        **settings_of("basic"),
        **certificates.server_properties(),
        "inter.instance.protocol": "https",
        "authentication.method": "BASIC",
        "authentication.realm": "SchemaRegistry-Props",
        "authentication.roles": "admin,developer",
        "schema.registry.super.users": "User:admin",
        "schema.registry.acl.rules": "allow User:writer SUBJECT_READ,SUBJECT_WRITE orders-*",
        "access.control.allow.origin": "https://console.example",
    }
    options = {"scheme": "https", "tls": certificates.python(), "environment": jaas}
    with instances(cluster.bootstrap_servers, 2, settings, **options) as running:
        admin, writer = basic("admin", "admin-secret"), basic("writer", "writer-secret")
        for at in follower_and_leader(cluster, "basic", running):
            refused = at.ask("GET", "/subjects")
            assert (refused.status, refused.headers["www-authenticate"]) == (
                401,
                'Basic realm="SchemaRegistry-Props"',
            )
            assert at.ask("GET", "/subjects", headers=basic("admin", "wrong")).status == 401
            assert at.ask("GET", "/subjects", headers=basic("guest", "guest-secret")).status == 403
            assert at.ask("GET", "/subjects", headers=admin).status == 200
            versions = "/subjects/orders-value/versions"
            assert at.ask("POST", versions, STRING, writer).json["id"] == 1
            denied = at.ask("POST", "/subjects/people-value/versions", STRING, writer)
            assert (denied.status, denied.json["error_code"]) == (403, 40301)
            assert at.ask("POST", "/subjects/people-value/versions", STRING, admin).json["id"] == 1
            assert at.ask("GET", "/schemas/ids/1", headers=writer).status == 403
            assert at.ask("GET", "/schemas/ids/1?subject=orders-value", headers=writer).status == 200
            assert at.ask("GET", "/schemas/ids/1?subject=people-value", headers=writer).status == 403
            origin = {**admin, "Origin": "https://console.example"}
            allowed = at.ask("GET", "/subjects", headers=origin).headers["access-control-allow-origin"]
            assert allowed == "https://console.example"
        log = "".join(each.log for each in running)
        assert "secret" not in log


def test_aliases_do_not_lead_around_acls(cluster: Cluster) -> None:
    settings = {
        **settings_of("aliases"),
        "authentication.method": "BASIC",
        "authentication.user.admin": "a",
        "authentication.user.bob": "b",
        "schema.registry.super.users": "User:admin",
        "schema.registry.acl.rules": "allow User:bob * bobs-*",
    }
    admin, bob = basic("admin", "a"), basic("bob", "b")
    with instances(cluster.bootstrap_servers, 1, settings) as [registry]:
        for subject in ("secret", ":.ctx:bobs-not"):
            assert registry.ask("POST", f"/subjects/{subject}/versions", STRING, admin).status == 200
        assert registry.ask("PUT", "/config/bobs-alias", {"alias": "secret"}, bob).status == 200
        for path in ("/subjects/bobs-alias/versions/1", "/subjects/bobs-not/versions/1/schema"):
            assert registry.ask("GET", path, headers=admin).status == 200
            assert registry.ask("GET", path, headers=bob).status == 403
        assert registry.ask("POST", "/subjects/bobs-alias/versions", STRING, bob).status == 403
        assert registry.ask("POST", "/subjects/bobs-own/versions", STRING, bob).status == 200


def test_certificates_of_clients_and_instances(cluster: Cluster, certificates: Certificates) -> None:
    settings = {
        **settings_of("mutual"),
        **certificates.server_properties(),
        "ssl.client.authentication": "REQUIRED",
        "ssl.principal.mapping.rules": r"RULE:^CN=([^,]*)$/$1/,DEFAULT",
        "schema.registry.acl.rules": "allow User:alice * *",
        # Followers forward writes with their own certificate, after the check of the client's.
        "schema.registry.super.users": "User:server",
    }
    options = {"scheme": "https", "tls": certificates.python(mutual=True)}
    with instances(cluster.bootstrap_servers, 2, settings, **options) as running:
        for at in follower_and_leader(cluster, "mutual", running):
            assert at.register("s", '"string"').json["id"] == 1
            with pytest.raises((ssl.SSLError, ConnectionError, RemoteDisconnected)):
                _without_certificate(at, certificates)


def _without_certificate(instance: Instance, certificates: Certificates) -> None:
    connection = HTTPSConnection("127.0.0.1", instance.port, timeout=10, context=certificates.python())
    try:
        connection.request("GET", "/subjects")
        connection.getresponse()
    finally:
        connection.close()


def test_bearer_tokens_are_checked_and_forwarded(cluster: Cluster, tmp_path: Path) -> None:
    key = ECKey.generate_key("P-256", {"kid": "one"})
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps(KeySet([key]).as_dict(private=False)))
    settings = {
        **settings_of("bearer"),
        "authentication.method": "BEARER",
        "oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "oauthbearer.expected.audience": "registry",
        "schema.registry.acl.rules": "allow User:alice SUBJECT_WRITE *",
    }
    allowed = {"KAFKA_OPTS": f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"}

    def bearer(user: str, signer: ECKey, audience: str = "registry") -> dict[str, str]:
        now = int(time.time())
        claims = {"sub": user, "iat": now, "exp": now + 300, "aud": audience}
        return {"Authorization": "Bearer " + jwt.encode({"alg": "ES256", "kid": "one"}, claims, signer)}

    with instances(cluster.bootstrap_servers, 2, settings, environment=allowed) as running:
        path = "/subjects/s/versions"
        stranger = ECKey.generate_key("P-256", {"kid": "one"})
        for at in follower_and_leader(cluster, "bearer", running):
            assert at.ask("POST", path, STRING, bearer("alice", key)).json["id"] == 1
            assert at.ask("POST", path, STRING, bearer("bob", key)).status == 403
            assert at.ask("POST", path, STRING, bearer("alice", stranger)).status == 401
            assert at.ask("POST", path, STRING, bearer("alice", key, "else")).status == 401
            assert at.ask("POST", path, STRING).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("mode", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "mTLS"])
def test_connections_to_a_secured_kafka(mode: str) -> None:
    with Cluster(security=mode) as secured:
        asyncio.run(_register_at(secured))


async def _register_at(secured: Cluster) -> None:
    properties = {f"kafkastore.{name}": value for name, value in secured.client_config.items()}
    properties["kafkastore.bootstrap.servers"] = secured.bootstrap_servers
    service = create_service(properties, "1.0")
    try:
        await service.start(["http://127.0.0.1:8081"])
        answer = await ask(service.application, "POST", "/subjects/s/versions", STRING)
        assert (answer.status, answer.json["id"]) == (200, 1)
    finally:
        await service.close()


def test_wrong_password_for_kafka_is_named_and_no_secret_is_shown() -> None:
    with Cluster(security="SCRAM-SHA-512") as secured:
        config = secured.client_config
        jaas = config["sasl.jaas.config"].replace('password="', 'password="wrong-')
        command = [sys.executable, "-m", "moldau", "registry", "--verbose", "--port", "0"]
        command += ["--bootstrap-server", secured.bootstrap_servers]
        for name, value in {**config, "sasl.jaas.config": jaas}.items():
            command += ["--set", f"kafkastore.{name}={value}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 1
        assert "uthentication failed" in done.stderr
        assert "wrong-" not in done.stdout + done.stderr
        assert "other users of this machine can read kafkastore.sasl.jaas.config" in done.stderr
