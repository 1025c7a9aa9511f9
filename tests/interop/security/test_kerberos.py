"""Kerberos across brokers: Java's clients and ours log in to Apache Kafka and to Moldau with one KDC."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.network.client import NodeConnection
from moldau.network.connector import ClientSecurity, Connector, SaslLogin
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.security.sasl.clients import sasl_client
from tests.harness.apache.node import free_port
from tests.harness.apache.shared_folder import APACHE, MOLDAU, SharedFolder
from tests.harness.registry.instances import instances
from tests.harness.security.client_settings import write_java_settings
from tests.harness.security.kdc import REALM, Kdc, require_kerberos
from tests.harness.waiting import eventually
from tests.interop.go_programs import built
from tests.interop.java_oracle import ask_java

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

KRB5 = "com.sun.security.auth.module.Krb5LoginModule"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    require_kerberos()
    running = Kdc(tmp_path_factory.mktemp("kdc")).start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={running.environment['KRB5_CONFIG']}")
        yield running
    running.stop()


def jaas(kdc: Kdc, principal: str) -> str:
    keytab = kdc.folder / f"{principal.replace('/', '-')}.keytab"
    if not keytab.exists():
        kdc.add(principal)
    return f'{KRB5} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}";'


@pytest.fixture(scope="module", params=[APACHE, MOLDAU])
def port(
    request: pytest.FixtureRequest, kdc: Kdc, libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """The port of a node all of whose listeners use Kerberos."""
    port, controller = free_port(), free_port()
    config = {
        "listeners": f"BROKER://localhost:{port},CONTROLLER://localhost:{controller}",
        "listener.security.protocol.map": "BROKER:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "BROKER",
        "controller.quorum.bootstrap.servers": f"localhost:{controller}",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.broker.gssapi.sasl.jaas.config": jaas(kdc, "kafka/localhost"),
        "listener.name.controller.gssapi.sasl.jaas.config": jaas(kdc, "kafka/localhost"),
    }
    with SharedFolder(tmp_path_factory.mktemp(request.param), libs, config) as folder:
        folder.format(request.param)
        folder.start(request.param)
        yield port


def test_java_clients_log_in_with_a_key_table(port: int, kdc: Kdc, tmp_path: Path) -> None:
    settings = {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": jaas(kdc, "alice"),
    }
    file = write_java_settings(tmp_path / "client.properties", settings)
    topic = f"kerberos-{uuid.uuid4().hex[:8]}"
    assert dict(ask_java("SecuredClients", [f"alice\t{file}\t{topic}"])) == {"alice": "OK"}


def test_our_client_logs_in_with_a_key_table(port: int, kdc: Kdc) -> None:
    properties = {"sasl.jaas.config": jaas(kdc, "bob"), "sasl.kerberos.service.name": "kafka"}
    login = SaslLogin("GSSAPI", sasl_client("GSSAPI", properties.get))

    async def brokers() -> int:
        connector = Connector(security=ClientSecurity(sasl=login))
        connection = await NodeConnection.connect("localhost", port, connector=connector)
        try:
            return len((await connection.call(MetadataRequest(topics=[]))).brokers)
        finally:
            connection.close()

    assert asyncio.run(brokers()) == 1


def test_the_registry_logs_in_with_a_key_table(port: int, kdc: Kdc) -> None:
    settings = {
        "kafkastore.security.protocol": "SASL_PLAINTEXT",
        "kafkastore.sasl.mechanism": "GSSAPI",
        "kafkastore.sasl.kerberos.service.name": "kafka",
        "kafkastore.sasl.jaas.config": jaas(kdc, "registry"),
        "kafkastore.topic.replication.factor": "1",
    }
    with instances(f"localhost:{port}", 1, settings) as [registry]:
        eventually(lambda: registry.register("s", '"string"').status == 200, what="the registry leads")
        assert registry.ask("GET", "/subjects/s/versions/1").json["schema"] == '"string"'


def test_franz_go_logs_in_with_a_key_table(port: int, kdc: Kdc) -> None:
    program = built("secured")
    connection = {
        "Name": "franz-go",
        "Bootstrap": f"localhost:{port}",
        "Topic": f"kerberos-{uuid.uuid4().hex[:8]}",
        "Mechanism": "GSSAPI",
        "User": "dave",
        "Realm": REALM,
        "Configuration": kdc.environment["KRB5_CONFIG"],
        "Keytab": str(kdc.add("dave")),
    }
    done = subprocess.run(
        [program], input=json.dumps([connection]), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "franz-go\tOK\n", done.stdout + done.stderr


def test_librdkafka_logs_in_with_a_key_table(port: int, kdc: Kdc) -> None:
    """The wheel of librdkafka has no GSSAPI; Debian's kcat has."""
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed (apt install kcat libsasl2-modules-gssapi-mit)")
    keytab, topic = kdc.add("erin"), f"kerberos-{uuid.uuid4().hex[:8]}"
    settings = [
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=GSSAPI",
        "sasl.kerberos.service.name=kafka",
        f"sasl.kerberos.keytab={keytab}",
        f"sasl.kerberos.principal=erin@{REALM}",
    ]
    options = ["-b", f"localhost:{port}", *(part for each in settings for part in ("-X", each))]

    def kcat(*arguments: str, text: str = "") -> str:
        command = ["kcat", *options, *arguments]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ)
        )
        if "No worthy mechs" in done.stderr:
            pytest.skip("Cyrus SASL has no GSSAPI (apt install libsasl2-modules-gssapi-mit)")
        assert done.returncode == 0, done.stderr
        return done.stdout

    kcat("-P", "-t", topic, text="one\ntwo\n")
    assert kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q") == "one\ntwo\n"
