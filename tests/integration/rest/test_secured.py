"""A proxy between a secured registry and a secured Kafka."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from moldau.client.registry import RegistryClient
from moldau.testing import Cluster
from tests.harness.registry.instances import Instance, instances
from tests.harness.rest_proxy import V2, Api, embedded, rest_proxy
from tests.harness.security.certificates import Certificates
from tests.harness.waiting import eventually

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}'
RECORDS = {"value_schema": ORDER, "records": [{"value": {"id": "a"}}]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def logins(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, str]]]:
    """Return the settings and the environment of the registry, and the settings of clients by login."""
    key = ECKey.generate_key("P-256", {"kid": "one"})
    keys = tmp_path_factory.mktemp("keys") / "jwks.json"
    keys.write_text(json.dumps(KeySet([key]).as_dict(private=False)))
    now = int(time.time())
    token = jwt.encode({"alg": "ES256", "kid": "one"}, {"sub": "rest", "iat": now, "exp": now + 600}, key)
    registry = {
        "authentication.method": "BASIC,BEARER",
        "authentication.user.rest": "s3cret",
        "oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "schema.registry.acl.rules": "allow User:rest * *",
    }
    clients = {
        "basic": {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "rest:s3cret"},
        "bearer": {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": token},
        "wrong": {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "rest:wrong"},
    }
    environment = {"KAFKA_OPTS": f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"}
    return registry, environment, clients


@pytest.fixture(scope="module")
def registry(
    cluster: Cluster,
    certificates: Certificates,
    logins: tuple[dict[str, str], dict[str, str], dict[str, dict[str, str]]],
) -> Iterator[Instance]:
    """A registry with TLS, which admits clients with a certificate and a login."""
    own, environment, _ = logins
    settings = {**own, **certificates.server_properties(), "ssl.client.authentication": "REQUIRED"}
    options = {"scheme": "https", "tls": certificates.python(mutual=True), "environment": environment}
    with instances(cluster.bootstrap_servers, 1, settings, **options) as [running]:
        yield running


@pytest.mark.parametrize("login", ["basic", "bearer", "wrong"])
def test_schemas_of_a_secured_registry(
    cluster: Cluster,
    certificates: Certificates,
    registry: Instance,
    logins: tuple[dict[str, str], dict[str, str], dict[str, dict[str, str]]],
    tmp_path: Path,
    login: str,
) -> None:
    client = {"url": registry.url, **certificates.java(mutual=True), **logins[2][login]}
    del client["security.protocol"]
    file = tmp_path / "rest.properties"
    file.write_text("".join(f"schema.registry.{name}={value}\n" for name, value in client.items()))
    topic = f"secured-{login}"
    with rest_proxy(cluster.bootstrap_servers, "--config", str(file)) as rest:
        answer = rest("POST", f"/topics/{topic}", RECORDS, embedded("avro"))
        if login == "wrong":
            assert answer.error == (403, 40301)
            return
        assert answer.status == 200, answer
        assert answer.body["offsets"][0]["error_code"] is None
        assert read(rest, topic) == [{"id": "a"}]
    with RegistryClient(client) as own:
        assert own.latest(f"{topic}-value").id == answer.body["value_schema_id"]


@pytest.mark.parametrize("mode", ["SCRAM-SHA-512", "mTLS"])
def test_connections_to_a_secured_kafka(tmp_path: Path, mode: str) -> None:
    with Cluster(security=mode) as secured:
        assert "SSL" in secured.client_config["security.protocol"]
        file = tmp_path / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in secured.client_config.items()))
        with rest_proxy(secured.bootstrap_servers, "--command-config", str(file)) as rest:
            produced = rest("POST", "/topics/t", {"records": [{"value": 7}]}, embedded("json"))
            assert produced.body["offsets"][0]["error_code"] is None, produced
            assert read(rest, "t", "json") == [7]
            assert rest("GET", "/topics").body == ["t"]


def read(rest: Api, topic: str, format: str = "avro") -> list[object]:
    """Read a topic with a consumer instance."""
    config = {"name": "one", "format": format, "auto.offset.reset": "earliest"}
    assert rest("POST", "/consumers/readers", config, V2).status == 200
    path = "/consumers/readers/instances/one"
    assert rest("POST", f"{path}/subscription", {"topics": [topic]}, V2).status == 204
    found = eventually(lambda: rest("GET", f"{path}/records", accept=embedded(format)).body, timeout=20)
    assert rest("DELETE", path).status == 204
    return [each["value"] for each in found]
