"""New key stores take effect for new connections without a restart, and unusable ones are refused."""

from __future__ import annotations

import socket
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from moldau.testing import Cluster
from tests.harness.security.certificates import HOSTS, Certificates
from tests.harness.tools import ToolRun, run_tool
from tests.harness.waiting import eventually

LISTENERS = {"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL"}
LOCATION = "listener.name.plaintext.ssl.keystore.location"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "certificates")


@pytest.fixture
def cluster(certificates: Certificates) -> Iterator[Cluster]:
    with Cluster(config={**LISTENERS, **certificates.server_properties()}) as started:
        yield started


def served(cluster: Cluster, certificates: Certificates) -> bytes:
    """Return the certificate that a new connection gets."""
    with (
        socket.create_connection(("127.0.0.1", cluster.port)) as plain,
        certificates.python().wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        found = secured.getpeercert(binary_form=True)
    assert found is not None
    return found


def alter(cluster: Cluster, certificates: Certificates, location: str, name: str = LOCATION) -> None:
    # Admin clients cannot be closed, and one whose broker has stopped logs each attempt to connect.
    quiet = {"log_level": 0, "reconnect.backoff.ms": 10_000}
    admin = AdminClient(
        {"bootstrap.servers": cluster.bootstrap_servers, **quiet, **certificates.librdkafka()}
    )
    entry = ConfigEntry(name, location, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def refused(cluster: Cluster, certificates: Certificates, location: str) -> str:
    with pytest.raises(confluent_kafka.KafkaException) as error:
        alter(cluster, certificates, location)
    failure = error.value.args[0]
    assert failure.code() == confluent_kafka.KafkaError.INVALID_REQUEST
    return str(failure.str())


def test_another_file_takes_effect(cluster: Cluster, certificates: Certificates) -> None:
    before = served(cluster, certificates)
    issued = certificates.issue("server", HOSTS)
    alter(cluster, certificates, str(issued.write_pem(certificates.folder / "new.pem")))
    eventually(lambda: served(cluster, certificates) != before)


def test_kafka_configs_replaces_the_store_of_a_listener(
    cluster: Cluster, certificates: Certificates, tmp_path: Path
) -> None:
    client = tmp_path / "client.properties"
    client.write_text("".join(f"{name}={value}\n" for name, value in certificates.java().items()))

    def add(config: str) -> ToolRun:
        common = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(client))
        entity = ("--entity-type", "brokers", "--entity-name", "1")
        return run_tool("kafka-configs", *common, *entity, "--alter", "--add-config", config)

    before = served(cluster, certificates)
    fresh = certificates.issue("server", HOSTS).write_pem(certificates.folder / "fresh.pem")
    done = add(f"{LOCATION}={tmp_path / 'missing.pem'}")
    assert done.code != 0
    assert "cannot be read" in done.out + done.err
    assert add(f"{LOCATION}={fresh}").code == 0
    eventually(lambda: served(cluster, certificates) != before, timeout=10)
    without_listener = add(f"ssl.keystore.location={fresh}")
    assert "only per-listener using the listener prefix" in without_listener.out + without_listener.err


def test_other_users_of_the_machine_cannot_read_passwords_in_the_metadata(
    cluster: Cluster, certificates: Certificates
) -> None:
    alter(cluster, certificates, "secret-in-metadata", "listener.name.plaintext.ssl.key.password")
    written = [file for file in cluster.data_dir.rglob("*") if file.is_file()]
    holders = [file for file in written if b"secret-in-metadata" in file.read_bytes()]
    assert holders, "Kafka stores it in the metadata log"
    for file in holders:
        folders = [each for each in file.parents if each.is_relative_to(cluster.data_dir)]
        assert any(stat.S_IMODE(each.stat().st_mode) & 0o077 == 0 for each in (file, *folders[:-1])), file


def test_the_same_path_with_new_content_takes_effect(cluster: Cluster, certificates: Certificates) -> None:
    before = served(cluster, certificates)
    alter(cluster, certificates, str(certificates.server))
    certificates.issue("server", HOSTS).write_pem(certificates.server)
    alter(cluster, certificates, str(certificates.server))
    eventually(lambda: served(cluster, certificates) != before, timeout=3)


def test_a_changed_file_takes_effect_by_itself(cluster: Cluster, certificates: Certificates) -> None:
    before = served(cluster, certificates)
    certificates.issue("server", HOSTS).write_pem(certificates.server)
    eventually(lambda: served(cluster, certificates) != before, timeout=20)


def test_open_connections_stay(cluster: Cluster, certificates: Certificates) -> None:
    with (
        socket.create_connection(("127.0.0.1", cluster.port)) as plain,
        certificates.python().wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        before = served(cluster, certificates)
        issued = certificates.issue("server", HOSTS)
        alter(cluster, certificates, str(issued.write_pem(certificates.folder / "new.pem")))
        eventually(lambda: served(cluster, certificates) != before)
        # ApiVersions version 0 with correlation id 7.
        secured.sendall(bytes.fromhex("0000000a0012000000000007ffff"))
        assert secured.recv(8)[4:] == bytes.fromhex("00000007")


def test_unusable_stores_are_refused(cluster: Cluster, certificates: Certificates, tmp_path: Path) -> None:
    before = served(cluster, certificates)
    assert "cannot be read" in refused(cluster, certificates, str(tmp_path / "missing.pem"))
    damaged = tmp_path / "damaged.pem"
    damaged.write_text(certificates.server.read_text().replace("MII", "MIJ"))
    assert "damaged" in refused(cluster, certificates, str(damaged))
    other = certificates.issue("another", HOSTS).write_pem(tmp_path / "name.pem")
    assert "DistinguishedName" in refused(cluster, certificates, str(other))
    fewer = certificates.issue("server", ("localhost",)).write_pem(tmp_path / "fewer.pem")
    assert "SubjectAltNames" in refused(cluster, certificates, str(fewer))
    strange = Certificates(tmp_path / "strange")
    assert "connect to each other" in refused(cluster, certificates, str(strange.server))
    assert served(cluster, certificates) == before


def test_a_damaged_file_does_not_take_effect(cluster: Cluster, certificates: Certificates) -> None:
    before = served(cluster, certificates)
    good = certificates.server.read_text()
    certificates.server.write_text("-----BEGIN")
    eventually(lambda: "keeps its certificates" in cluster.log_file.read_text(), timeout=20)
    assert served(cluster, certificates) == before
    certificates.server.write_text(good)


def test_changes_of_names_can_be_allowed(certificates: Certificates) -> None:
    allowed = {"ssl.allow.dn.changes": True, "ssl.allow.san.changes": True}
    with Cluster(config={**LISTENERS, **certificates.server_properties(), **allowed}) as cluster:
        other = certificates.issue("another", ("127.0.0.1",)).write_pem(certificates.folder / "other.pem")
        alter(cluster, certificates, str(other))
        eventually(lambda: b"another" in served(cluster, certificates))


def test_a_listener_without_certificate_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"ssl\.keystore\.location"), Cluster(config=LISTENERS):
        pass


def test_connections_after_the_change_of_the_trust_store(certificates: Certificates, tmp_path: Path) -> None:
    strange = Certificates(tmp_path / "strange", client="bob")
    with Cluster(config={**LISTENERS, **certificates.server_properties("required")}) as cluster:
        context = ssl.create_default_context(cafile=str(certificates.ca))
        context.load_cert_chain(str(strange.client))

        def accepted() -> bool:
            try:
                with (
                    socket.create_connection(("127.0.0.1", cluster.port)) as plain,
                    context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
                ):
                    secured.sendall(bytes.fromhex("0000000a0012000000000007ffff"))
                    return bool(secured.recv(1))
            except (ssl.SSLError, ConnectionError):
                return False

        assert not accepted()
        certificates.ca.write_text(certificates.ca.read_text() + strange.ca.read_text())
        eventually(accepted, timeout=20)
