"""`moldau certificates`: files for servers and clients, signed by one authority."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509

from moldau.cli.moldau.certificates import create
from moldau.cli.shared.tool import ToolError


def run(folder: Path, servers: list[str], clients: list[str], *, renew: bool = False) -> list[str]:
    lines: list[str] = []
    create(folder, servers, clients, renew=renew, announce=lines.append)
    return lines


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_server_and_client_certificates_are_signed_by_the_authority(tmp_path: Path) -> None:
    run(tmp_path, ["broker1.example.org,localhost,127.0.0.1"], ["alice"])
    authority = certificate(tmp_path / "ca.pem")
    server = certificate(tmp_path / "broker1.example.org.pem")
    server.verify_directly_issued_by(authority)
    certificate(tmp_path / "alice.pem").verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["broker1.example.org", "localhost"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_files_are_ready_for_openssl(tmp_path: Path) -> None:
    run(tmp_path, ["localhost"], [])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "localhost.pem")
    context.load_verify_locations(tmp_path / "ca.pem")


def test_private_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    run(tmp_path, ["localhost"], ["alice"])
    for name in ("ca-key.pem", "localhost.pem", "alice.pem"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_repeated_command_keeps_certificates_unless_they_are_renewed(tmp_path: Path) -> None:
    run(tmp_path, ["localhost"], [])
    before = certificate(tmp_path / "localhost.pem")
    assert any("kept" in line for line in run(tmp_path, ["localhost"], []))
    assert certificate(tmp_path / "localhost.pem") == before
    run(tmp_path, ["localhost"], [], renew=True)
    renewed = certificate(tmp_path / "localhost.pem")
    assert renewed.serial_number != before.serial_number
    renewed.verify_directly_issued_by(certificate(tmp_path / "ca.pem"))


@pytest.mark.parametrize("name", ["../alice", "ca", ""])
def test_names_that_are_no_files_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolError):
        run(tmp_path, [name] if not name else [], [name] if name else [])


def test_damaged_authority_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "ca-key.pem").write_text("nonsense")
    with pytest.raises(ToolError, match=r"ca-key\.pem"):
        run(tmp_path, ["localhost"], [])
