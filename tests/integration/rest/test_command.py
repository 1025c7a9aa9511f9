"""The commands `moldau rest` and `kafka-rest-start`: files, https, and starts that fail."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from moldau.local.ports import ReservedPorts
from moldau.security.tls.authority import Authority
from tests.harness.rest_proxy import rest_proxy
from tests.integration.rest.conftest import World

COMMANDS = Path(sys.executable).parent


def free_port() -> int:
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    ports.release()
    return port


def test_start_script_with_a_file_and_https(world: World, tmp_path: Path) -> None:
    authority = Authority.create("REST test CA")
    key = authority.issue("proxy", hosts=["localhost"]).write_pkcs12(tmp_path / "key.p12", "secret")
    trust = authority.write_trust_pem(tmp_path / "trust.pem")
    port = free_port()
    settings = {
        "bootstrap.servers": world.bootstrap,
        "listeners": f"https://localhost:{port}",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(key),
        "ssl.keystore.password": "secret",
        "authentication.method": "BASIC",
        "authentication.user.ann": "secret",
        "authentication.skip.paths": "/openapi.json,/docs",
    }
    file = tmp_path / "rest.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    process = subprocess.Popen(
        [str(COMMANDS / "kafka-rest-start"), str(file)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert f"https://localhost:{port}" in process.stdout.readline()
        context = ssl.create_default_context(cafile=str(trust))
        with urllib.request.urlopen(f"https://localhost:{port}/openapi.json", context=context) as answer:
            assert json.load(answer)["openapi"].startswith("3.")
        with urllib.request.urlopen(f"https://localhost:{port}/docs", context=context) as answer:
            assert b"/v3/clusters" in answer.read()
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"https://localhost:{port}/topics", context=context)
        assert refused.value.code == 401
    finally:
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()


def test_disabled_endpoints(world: World) -> None:
    settings = {"api_v2_enable": "false", "api_endpoints_blocklist": "api.v3.topics.create,api.v3.acls.*"}
    with rest_proxy(world.bootstrap, **settings) as rest:
        assert rest("GET", "/topics").error == (404, 404)
        assert rest("GET", world.v3("/topics")).status == 200
        assert rest("POST", world.v3("/topics"), {"topic_name": "disabled"}).error == (405, 405)
        assert rest("GET", world.v3("/acls")).error == (404, 404)
        assert rest("DELETE", world.v3("/acls")).error == (405, 405)
        assert rest("GET", world.v3("/topics/disabled")).error == (404, 40403)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bootstrap-server", "{broker}", "--set", "consumer.threads=many"], "consumer.threads"),
        (["--bootstrap-server", "{broker}", "--set", "listeners=ftp://x"], "listeners has ftp://x"),
        (["--bootstrap-server", "{broker}", "--port", "{taken}"], "Cannot listen on"),
        (["--bootstrap-server", "{broker}", "--set", "api.endpoints.allowlist=topics"], "no such endpoint"),
        ([], "bootstrap-server"),
    ],
)
def test_a_start_that_fails_says_why(world: World, arguments: list[str], message: str) -> None:
    values = {"broker": world.bootstrap, "taken": str(world.rest.port)}
    done = subprocess.run(
        [sys.executable, "-m", "moldau", "rest", *(each.format(**values) for each in arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert message in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
