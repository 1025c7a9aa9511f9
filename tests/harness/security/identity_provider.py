"""A small identity provider over HTTP: signs tokens, publishes its keys, grants client credentials."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
CLIENT_ID, CLIENT_SECRET = "client-1", "client-secret-1"


class IdentityProvider:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """`tls`: the server's context, for https."""
        self.keys: dict[str, Any] = {}
        #: Paths of the requests so far.
        self.requests: list[str] = []
        #: The scopes asked for at the token endpoint.
        self.scopes: list[str] = []
        #: The status of the next answers, instead of 200.
        self.failures: list[int] = []
        self.lifetime_seconds = 3600
        self.rotate("key-1")
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider._answer(self, "")

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                provider._answer(self, self.rfile.read(length).decode())

            def log_message(self, *_: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/jwks"

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    @property
    def kafka_opts(self) -> str:
        return f"-D{ALLOWED_URLS}={self.jwks_url},{self.token_url}"

    def rotate(self, key_id: str, kind: str = "RSA") -> None:
        """Replace all keys by a new one."""
        parameters: dict[str, Any] = {"kid": key_id, "use": "sig"}
        made = (
            RSAKey.generate_key(2048, parameters)
            if kind == "RSA"
            else ECKey.generate_key("P-256", parameters)
        )
        self.keys = {key_id: made}

    def jwks(self) -> bytes:
        return json.dumps({"keys": [key.as_dict(private=False) for key in self.keys.values()]}).encode()

    def token(self, subject: str = "alice", *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """Sign a token with the newest key; claims that are None are left out."""
        key_id, key = list(self.keys.items())[-1]
        algorithm = "ES256" if isinstance(key, ECKey) else "RS256"
        now = int(time.time())
        values = {"sub": subject, "iat": now, "exp": now + self.lifetime_seconds, **claims}
        return jwt.encode(
            {"alg": algorithm, "kid": key_id, **(header or {})},
            {name: value for name, value in values.items() if value is not None},
            key,
            algorithms=[algorithm],
        )

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def __enter__(self) -> IdentityProvider:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, request: BaseHTTPRequestHandler, body: str) -> None:
        self.requests.append(request.path)
        if self.failures:
            self._send(request, self.failures.pop(0), b'{"error":"temporarily_unavailable"}')
        elif request.path == "/jwks":
            self._send(request, 200, self.jwks())
        elif request.path == "/redirect":
            request.send_response(302)
            request.send_header("Location", self.jwks_url)
            request.end_headers()
        elif request.path == "/token":
            self._grant(request, body)
        else:
            self._send(request, 404, b"")

    def _grant(self, request: BaseHTTPRequestHandler, body: str) -> None:
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        fields = parse_qs(body)
        if request.headers.get("Authorization") != f"Basic {expected}":
            self._send(request, 401, b'{"error":"invalid_client"}')
            return
        assert fields["grant_type"] == ["client_credentials"]
        self.scopes += fields.get("scope", [])
        answer = {"access_token": self.token(CLIENT_ID), "token_type": "Bearer"}
        self._send(request, 200, json.dumps(answer).encode())

    def _send(self, request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
