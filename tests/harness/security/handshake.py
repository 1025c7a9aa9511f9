"""A TLS handshake in memory."""

from __future__ import annotations

import ssl


def handshake(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str | None = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Connect a client to a server and return both sessions, the server's first."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    waiting = list(sides)
    for _ in range(8):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
    assert not waiting
    return sides[1], sides[0]
