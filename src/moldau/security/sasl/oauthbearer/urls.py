"""URLs of identity providers: which are allowed, and reading them with limits on time and size.

As in Kafka, a token endpoint or a JWKS endpoint is used only if the JVM property
`org.apache.kafka.sasl.oauthbearer.allowed.urls` names it. Redirects are not followed, because they would lead
to URLs that are not allowed. All functions here that open a URL block.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from moldau.config.definition import ConfigError

if TYPE_CHECKING:
    from ssl import SSLContext

ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_SCHEMES = ("http", "https", "file")
_MAX_BYTES = 1024 * 1024
_CHUNK = 16 * 1024
_MAX_SHOWN = 300
DEFAULT_TIMEOUT_SECONDS: Final = 10.0


class FetchFailed(Exception):
    """A URL could not be read; the message names the URL and the reason. `final`: a retry will not help."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A URL that may be read."""

    url: str
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    #: The trust in an https server; None: the system's.
    tls: SSLContext | None = field(default=None, repr=False)

    @classmethod
    def of(cls, config: str, value: str, properties: Mapping[str, str], **options: Any) -> Endpoint:
        """Check the URL in a config; `ConfigError` if it is not allowed or cannot be used."""
        url = value.strip()
        try:
            scheme = urlsplit(url).scheme.lower()
        except ValueError:
            raise ConfigError(f"{config} contains a URL ({url}) that is malformed") from None
        if scheme not in _SCHEMES:
            raise ConfigError(
                f"{config} contains a URL ({url}) with an invalid protocol; "
                f"only {', '.join(_SCHEMES)} are supported"
            )
        allowed = [each.strip() for each in properties.get(ALLOWED_URLS, "").split(",")]
        if url not in allowed:
            raise ConfigError(
                f"{config}: {url} is not allowed. Update system property '{ALLOWED_URLS}' to allow {url}, "
                f"for example KAFKA_OPTS=-D{ALLOWED_URLS}={url}"
            )
        return cls(url, **options)

    @property
    def file(self) -> str | None:
        """The path of a file URL; None for other URLs."""
        parts = urlsplit(self.url)
        return unquote(parts.path) if parts.scheme.lower() == "file" else None

    def read(self, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        """Return the content: of the file, or of the answer to GET, with `body` to POST."""
        path = self.file
        if path is not None:
            return _read_file(path)
        request = urllib.request.Request(
            self.url, data=body, headers={"Accept": "application/json", **(headers or {})}
        )
        try:
            with self._opener().open(request, timeout=self.timeout_seconds) as response:
                return self._read_all(response)
        except urllib.error.HTTPError as error:
            raise self._refused(error) from None
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise FetchFailed(f"{self.url} cannot be read: {reason}") from None

    def _opener(self) -> urllib.request.OpenerDirector:
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if self.tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=self.tls))
        return urllib.request.build_opener(*handlers)

    def _read_all(self, response: Any) -> bytes:
        deadline = time.monotonic() + self.timeout_seconds
        data = bytearray()
        while chunk := response.read1(_CHUNK):
            data += chunk
            if len(data) > _MAX_BYTES:
                raise FetchFailed(f"{self.url} answered more than {_MAX_BYTES} bytes", final=True)
            if time.monotonic() > deadline:
                raise FetchFailed(f"{self.url} did not answer within {self.timeout_seconds:g} s")
        return bytes(data)

    def _refused(self, error: urllib.error.HTTPError) -> FetchFailed:
        """Return the failure with the server's explanation, which contains no secret (RFC 6749 §5.2)."""
        with error:
            try:
                shown = error.read(_MAX_SHOWN).decode("utf-8", "replace")
            except OSError:
                shown = ""
        detail = f": {' '.join(shown.split())}" if shown else ""
        final = 400 <= error.code < 500 and error.code not in (408, 429)
        return FetchFailed(f"{self.url} answered {error.code} {error.reason}{detail}", final=final)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **options: Any) -> None:
        return None


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise FetchFailed(f"the file {path} cannot be read: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise FetchFailed(f"the file {path} is larger than {_MAX_BYTES} bytes", final=True)
    return data
