from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from moldau.security.tls.authority import Authority, distinguished_name, write_private


def test_files_with_keys_belong_to_their_owner_only(authority: Authority, tmp_path: Path) -> None:
    issued = authority.issue("a")
    paths = [
        authority.write(tmp_path / "authority.pem"),
        issued.write_pem(tmp_path / "a.pem"),
        issued.write_pkcs12(tmp_path / "a.p12", "secret"),
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_an_authority_is_read_again(authority: Authority, tmp_path: Path) -> None:
    again = Authority.load(authority.write(tmp_path / "authority.pem"))
    assert again.certificate == authority.certificate
    issued = again.issue("a", key_type="RSA")
    issued.certificate.verify_directly_issued_by(authority.certificate)


def test_names(authority: Authority) -> None:
    name = distinguished_name("a", country_name="CZ", organization_name="O")
    assert authority.issue(name).certificate.subject.rfc4514_string() == "CN=a,O=O,C=CZ"


@pytest.mark.skipif(shutil.which("keytool") is None, reason="Java's keytool is not installed")
def test_java_reads_the_stores(authority: Authority, tmp_path: Path) -> None:
    key = authority.issue("a").write_pkcs12(tmp_path / "a.p12", "secret1")
    trust = authority.write_trust_pkcs12(tmp_path / "trust.p12", "secret1")
    for path, kind in ((key, "PrivateKeyEntry"), (trust, "trustedCertEntry")):
        command = ["keytool", "-list", "-keystore", str(path), "-storepass", "secret1"]
        assert kind in subprocess.run(command, check=True, capture_output=True, text=True).stdout
