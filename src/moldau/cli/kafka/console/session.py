"""What the console tools share: a first look at the cluster, and an end that cleans up."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from moldau.cli.shared.librdkafka import describe_error
from moldau.cli.shared.tool import warn


def check_reachable(properties: Mapping[str, str], topic: str | None, *, create: bool = True) -> None:
    """Raise an error that says what to do if the cluster is not there; have a missing topic created.

    librdkafka would only go on trying. Secured clusters are left to it: our own client cannot look there yet.
    """
    from moldau.client.admin.client import AdminClient
    from moldau.client.wire.settings import ClientSettings

    if properties.get("security.protocol", "PLAINTEXT").upper() != "PLAINTEXT":
        return
    with AdminClient(ClientSettings.from_properties(properties)) as admin:
        if topic is not None and create and not admin.ensure_topic(topic):
            warn(f"Warning: topic {topic} does not exist yet; waiting for it.")


class ReportOnce:
    """Says what librdkafka complains about, each thing once; it goes on trying by itself."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, error: Any) -> None:
        sentence = describe_error(error)
        if sentence not in self._said:
            self._said.add(sentence)
            warn(f"Warning: {sentence}")


@contextmanager
def ends_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the block like Ctrl-C does, so that clients are closed and counts printed."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
