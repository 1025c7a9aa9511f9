"""URLs of identity providers: which are allowed, and the limits when they are read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.config.definition import ConfigError
from moldau.security.sasl.oauthbearer.urls import ALLOWED_URLS, Endpoint, FetchFailed
from tests.harness.security.identity_provider import IdentityProvider


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        yield running


def test_an_allowed_url_is_accepted() -> None:
    properties = {ALLOWED_URLS: "https://a/x, https://b/jwks"}
    assert Endpoint.of("the.config", " https://b/jwks ", properties).url == "https://b/jwks"


@pytest.mark.parametrize("url", ["https://b/jwks", "https://a/x/y", "http://a/x", "file:///etc/passwd"])
def test_other_urls_are_refused_with_the_remedy(url: str) -> None:
    with pytest.raises(ConfigError, match=r"not allowed\. Update system property"):
        Endpoint.of("the.config", url, {ALLOWED_URLS: "https://a/x"})


@pytest.mark.parametrize("url", ["ftp://a/x", "a/x", "https://[::1", ""])
def test_malformed_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"the\.config"):
        Endpoint.of("the.config", url, {ALLOWED_URLS: url})


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "the keys"
    file.write_text("{}")
    endpoint = Endpoint(f"file://{tmp_path}/the%20keys")
    assert endpoint.read() == b"{}"
    file.unlink()
    with pytest.raises(FetchFailed, match="No such file"):
        endpoint.read()


def test_a_server_is_read(provider: IdentityProvider) -> None:
    assert Endpoint(provider.jwks_url).read() == provider.jwks()


def test_errors_of_the_server_are_final_or_not(provider: IdentityProvider) -> None:
    for status, final in ((404, True), (401, True), (429, False), (503, False)):
        provider.failures.append(status)
        with pytest.raises(FetchFailed, match=str(status)) as failed:
            Endpoint(provider.jwks_url).read()
        assert failed.value.final is final


def test_redirects_are_not_followed(provider: IdentityProvider) -> None:
    with pytest.raises(FetchFailed, match="302"):
        Endpoint(f"{provider.url}/redirect").read()


def test_a_closed_port_is_a_failure() -> None:
    with pytest.raises(FetchFailed, match="cannot be read"):
        Endpoint("http://127.0.0.1:9/").read()


def test_a_silent_server_times_out() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        with pytest.raises(FetchFailed):
            Endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout_seconds=0.2).read()
    assert time.monotonic() - begin < 10


def test_large_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(1024 * 1024 + 1))
    with pytest.raises(FetchFailed, match="larger"):
        Endpoint(f"file://{file}").read()


def test_a_server_that_does_not_speak_http_is_a_failure() -> None:
    import socket
    import threading

    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(10_000)
            connection.sendall(b"220 mail.example.org ESMTP\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        with pytest.raises(FetchFailed, match="cannot be read"):
            Endpoint(f"http://127.0.0.1:{server.getsockname()[1]}/").read()
        thread.join()
