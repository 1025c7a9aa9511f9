"""`moldau dev --secure`: a listener with SASL_SSL, and what clients need to connect to it.

Certificates and users are created at the first start, in the folder `security` of the data. A cluster that
was created with security keeps it. The configs of clients are printed, password included, and stored in files
that only the owner can read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moldau.cli.shared.tool import ToolError
from moldau.local.plan import FILE_NAME as CLUSTER_FILE
from moldau.local.security.configs import SecurityConfigs
from moldau.local.security.files import USER, SecurityFiles, exists
from moldau.local.security.modes import SecurityMode

Announce = Callable[[str], None]

_HOSTS = ("localhost", "127.0.0.1", "::1")
_CLIENT_FILE = "client.properties"
_LIBRDKAFKA_FILE = "librdkafka.properties"


def dev_security(folder: Path, *, secure: bool) -> SecurityConfigs | None:
    """Return the security of the cluster in `folder`, created if it is new and `secure`; None without."""
    if not exists(folder):
        if not secure:
            return None
        if (folder / "meta.properties").exists() or (folder / CLUSTER_FILE).exists():
            raise ToolError(
                f"{folder} holds the data of a cluster without security. Choose another folder with --data."
            )
        folder.mkdir(parents=True, exist_ok=True)
    return SecurityConfigs(SecurityMode.SCRAM_SHA_512, SecurityFiles.prepare(folder, _HOSTS))


def announce_clients(security: SecurityConfigs, bootstrap_servers: str, announce: Announce) -> None:
    """Print and store the configs of clients."""
    servers = {"bootstrap.servers": bootstrap_servers}
    java = _store(security, _CLIENT_FILE, {**servers, **security.client_properties()})
    librdkafka = _store(security, _LIBRDKAFKA_FILE, {**servers, **security.librdkafka_properties()})
    arguments = {"bootstrap_servers": bootstrap_servers, **security.python_arguments()}
    file = client_file(security)
    announce(f"  security           SASL_SSL with {security.mode.mechanism}, user {USER}")
    announce(f"Java clients and Kafka's tools, with --command-config {file}:")
    _block(java.splitlines(), announce)
    announce(f"librdkafka, also in {security.files.folder / _LIBRDKAFKA_FILE}:")
    _block(librdkafka.splitlines(), announce)
    announce("Python:")
    pairs = {**servers, **security.librdkafka_properties()}
    _block(["confluent_kafka.Producer({", *(f'    "{a}": "{b}",' for a, b in pairs.items()), "})"], announce)
    _block(["kafka.KafkaProducer(", *(f'    {a}="{b}",' for a, b in arguments.items()), ")"], announce)


def client_file(security: SecurityConfigs) -> Path:
    """Return the properties file of clients, which `announce_clients` has stored."""
    return security.files.folder / _CLIENT_FILE


def _store(security: SecurityConfigs, name: str, properties: dict[str, str]) -> str:
    from moldau.security.tls.authority import write_private

    text = "".join(f"{key}={value}\n" for key, value in properties.items())
    write_private(security.files.folder / name, text.encode())
    return text


def _block(lines: list[str], announce: Announce) -> None:
    for line in lines:
        announce(f"  {line}")
