"""An S3 server on this machine."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

from moldau.local.ports import ReservedPorts

BUCKET = "tier"


@contextmanager
def s3_server() -> Iterator[str]:
    """Run an S3 server with an empty bucket; yields its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    ports = ReservedPorts("127.0.0.1")
    port = ports.choose()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    endpoint = f"http://127.0.0.1:{port}"
    try:
        request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        with urllib.request.urlopen(request, timeout=10):
            yield endpoint
    finally:
        server.stop()
        ports.release()


def s3_configs(endpoint: str, prefix: str) -> dict[str, str]:
    """Return the configs of an `ObjectStore` in this server."""
    return {
        "url": f"s3://{BUCKET}/{prefix}",
        "store.endpoint": endpoint,
        "store.access_key_id": "id",
        "store.secret_access_key": "secret",
        "store.region": "us-east-1",
        "client.allow_http": "true",
        "part.bytes": str(5 << 20),
    }
