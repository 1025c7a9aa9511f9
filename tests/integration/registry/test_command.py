"""The command `schema-registry-start` as it is installed: a file of properties, https, a login."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from moldau.local.ports import ReservedPorts
from moldau.security.tls.authority import Authority
from moldau.testing import Cluster

COMMANDS = Path(sys.executable).parent


def test_start_script_with_a_file_and_https(tmp_path: Path) -> None:
    authority = Authority.create("registry test CA")
    key = authority.issue("registry", hosts=["localhost"]).write_pkcs12(tmp_path / "key.p12", "secret")
    trust = authority.write_trust_pem(tmp_path / "trust.pem")
    ports = ReservedPorts("127.0.0.1")
    url = f"https://localhost:{ports.choose()}"
    ports.release()
    file = tmp_path / "schema-registry.properties"
    with Cluster() as cluster:
        settings = {
            "kafkastore.bootstrap.servers": f"PLAINTEXT://{cluster.bootstrap_servers}",
            "listeners": url,
            "inter.instance.protocol": "https",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(key),
            "ssl.keystore.password": "secret",
            "authentication.method": "BASIC",
            "authentication.user.ann": "secret",
            "schema.compatibility.level": "FULL",
        }
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        process = subprocess.Popen(
            [str(COMMANDS / "schema-registry-start"), str(file)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            assert url in process.stdout.readline()
            context = ssl.create_default_context(cafile=str(trust))
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{url}/config", context=context)
            assert refused.value.code == 401
            login = {"Authorization": f"Basic {base64.b64encode(b'ann:secret').decode()}"}
            request = urllib.request.Request(f"{url}/config", headers=login)
            with urllib.request.urlopen(request, context=context) as answer:
                assert json.load(answer) == {"compatibilityLevel": "FULL"}
        finally:
            process.terminate()
            assert process.wait(20) == 0
            process.stdout.close()
