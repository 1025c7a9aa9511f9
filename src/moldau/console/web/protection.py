"""What every request passes before a page sees it.

- Host: only names of this console. A page on the internet whose name is pointed to 127.0.0.1 (DNS rebinding)
  sends its own name.
- Origin: a browser names the page that sends a request; only the console's own pages may.
- Headers of responses: a strict content security policy, no framing, no sniffing, no caching.
"""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from moldau.console.settings import ConsoleSettings
from moldau.http.asgi import Application, Message, Receive, Scope, Send, header, send_response

_SECURITY: Final = (
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        b"frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_TEXT: Final = b"text/plain; charset=utf-8"


class Protection:
    """An ASGI application around the console."""

    def __init__(self, application: Application, settings: ConsoleSettings) -> None:
        self._application = application
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        send = _with_headers(send, cached=scope["path"].startswith("/static/"))
        reason = self.refusal(scope)
        if reason is not None:
            await send_response(send, 403, reason.encode(), _TEXT)
            return
        await self._application(scope, receive, send)

    def refusal(self, scope: Scope) -> str | None:
        """Return why a request is refused; None if it is not."""
        host = (header(scope, b"host") or b"").decode("latin-1")
        if not self._is_own(host):
            return f"The console is not known as {host!r}. Add the name: allowed.hosts."
        origin = header(scope, b"origin")
        if origin is not None:
            if urlsplit(origin.decode("latin-1")).netloc.lower() != host.lower():
                return "Requests from other origins are refused."
        elif scope["method"] not in _SAFE:
            site = header(scope, b"sec-fetch-site")
            if site not in (None, b"same-origin", b"none"):
                return "Requests from other sites are refused."
        return None

    def _is_own(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        if name in self._settings.hosts:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # Unlike a name, an address cannot be rebound by a DNS server.
        return address.is_loopback or not self._settings.loopback


def _with_headers(send: Send, *, cached: bool) -> Send:
    caching = (b"cache-control", b"max-age=3600" if cached else b"no-store")

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message.get("headers", ())}
            added = [each for each in (*_SECURITY, caching) if each[0] not in names]
            message["headers"] = [*message.get("headers", ()), *added]
        await send(message)

    return send_with_headers
