"""An OpenID Connect provider over HTTP: discovery, authorization with PKCE, tokens, userinfo.

Keys and signatures are those of `IdentityProvider`. `tamper` changes the next id tokens, to see them refused.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import secrets
import ssl
import threading
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.harness.security.identity_provider import IdentityProvider

CLIENT_ID, CLIENT_SECRET = "moldau console", "s3cret/with:signs"


class OidcProvider:
    def __init__(self, users: Mapping[str, Mapping[str, Any]], tls: ssl.SSLContext | None = None) -> None:
        """`users`: claims by the name under which the provider's page offers a user; `tls`: for https."""
        self.users = users
        self.keys = IdentityProvider(tls)
        self._scheme = "http" if tls is None else "https"
        #: Fields of the discovery document that differ from the usual ones.
        self.document: dict[str, Any] = {}
        #: Returns an id token instead of the right one, from its claims.
        self.tamper: Callable[[dict[str, Any]], str] | None = None
        #: Claims that only the userinfo endpoint has.
        self.only_userinfo: frozenset[str] = frozenset()
        #: The queries of authorization requests.
        self.authorizations: list[dict[str, str]] = []
        self._codes: dict[str, tuple[str, dict[str, str]]] = {}
        self._access: dict[str, str] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider._get(self)

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                provider._grant(self, _fields(self.rfile.read(length).decode()))

            def log_message(self, *_: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def issuer(self) -> str:
        # Another host than the console's 127.0.0.1: for browsers another site.
        return f"{self._scheme}://localhost:{self._server.server_address[1]}"

    def settings(self, **others: str) -> dict[str, str]:
        """Return the settings of a console that uses this provider, by their names with underscores."""
        chosen = {name.replace("_", "."): value for name, value in others.items()}
        return {
            "login": "oidc",
            "oidc.issuer.url": self.issuer,
            "oidc.client.id": CLIENT_ID,
            **chosen,
        }

    def approve(self, authorization_url: str, user: str) -> str:
        """Sign in as a browser does, and return the URL to which the provider sends it back."""
        query = urlsplit(authorization_url).query
        port = self._server.server_address[1]
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        if self._scheme == "https":
            connection = HTTPSConnection(
                "127.0.0.1", port, timeout=10, context=ssl._create_unverified_context()
            )
        try:
            connection.request("GET", f"/approve?{query}&as={user}")
            location = connection.getresponse().getheader("Location")
        finally:
            connection.close()
        assert location is not None
        return location

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
        self.keys.close()

    def __enter__(self) -> OidcProvider:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _get(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        fields = _fields(parts.query)
        if parts.path == "/.well-known/openid-configuration":
            _send(request, 200, json.dumps(self._document()).encode())
        elif parts.path == "/authorize":
            self.authorizations.append(fields)
            links = "".join(
                f'<p><a href="/approve?{html.escape(parts.query)}&amp;as={name}">Continue as {name}</a></p>'
                for name in self.users
            )
            _send(request, 200, f"<!doctype html><h1>Provider</h1>{links}".encode(), "text/html")
        elif parts.path == "/end":
            back = html.escape(fields["post_logout_redirect_uri"])
            page = f'<!doctype html><h1>The session has ended</h1><p><a href="{back}">Return</a></p>'
            _send(request, 200, page.encode(), "text/html")
        elif parts.path == "/approve":
            self._send_back(request, fields)
        elif parts.path == "/userinfo":
            user = self._access.get(request.headers.get("Authorization", "").removeprefix("Bearer "), "")
            claims = self.users.get(user)
            _send(request, 200 if claims else 401, json.dumps(claims or {}).encode())
        else:
            _send(request, 404, b"{}")

    def _document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/end",
            "jwks_uri": self.keys.jwks_url,
            "id_token_signing_alg_values_supported": ["RS256"],
            **self.document,
        }

    def _send_back(self, request: BaseHTTPRequestHandler, fields: dict[str, str]) -> None:
        answer = {"state": fields["state"]}
        if fields["as"] == "nobody":
            answer |= {"error": "access_denied", "error_description": "<b>The user said no</b>"}
        else:
            code = secrets.token_urlsafe(8)
            self._codes[code] = (fields["as"], fields)
            answer["code"] = code
        request.send_response(302)
        request.send_header("Location", f"{fields['redirect_uri']}?{urlencode(answer)}")
        request.end_headers()

    def _grant(self, request: BaseHTTPRequestHandler, fields: dict[str, str]) -> None:
        given = base64.b64decode(request.headers.get("Authorization", "").removeprefix("Basic ") or "")
        basic = "moldau+console:s3cret%2Fwith%3Asigns"
        posted = (fields.get("client_id"), fields.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)
        if given.decode() != basic and not posted:
            _send(request, 401, b'{"error":"invalid_client"}')
            return
        user, asked = self._codes.pop(fields.get("code", ""), ("", {}))
        digest = hashlib.sha256(fields.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            not user
            or challenge != asked["code_challenge"]
            or fields.get("redirect_uri") != asked["redirect_uri"]
            or asked["code_challenge_method"] != "S256"
        ):
            _send(request, 400, b'{"error":"invalid_grant"}')
            return
        access = secrets.token_urlsafe(8)
        self._access[access] = user
        answer = {"access_token": access, "token_type": "Bearer", "id_token": self._token(user, asked)}
        _send(request, 200, json.dumps(answer).encode())

    def _token(self, user: str, asked: dict[str, str]) -> str:
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "nonce": asked["nonce"],
            **{name: each for name, each in self.users[user].items() if name not in self.only_userinfo},
        }
        return self.keys.token(**claims) if self.tamper is None else self.tamper(claims)


def _fields(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes, kind: str = "application/json") -> None:
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
