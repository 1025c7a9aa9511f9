"""The e-mail step: a consumer group that writes e-mails to a file, one JSON object per line."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from topology import EMAILS

from moldau.client import Consumer


@contextmanager
def mailing(bootstrap_servers: str, file: Path) -> Iterator[None]:
    ended = threading.Event()
    thread = threading.Thread(target=_run, args=(bootstrap_servers, file, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _run(bootstrap_servers: str, file: Path, ended: threading.Event) -> None:
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "mailer",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    with Consumer(settings, value_deserializer="json") as consumer, file.open("a") as mails:
        consumer.subscribe([EMAILS])
        while not ended.is_set():
            for record in consumer.poll(0.2):
                mails.write(json.dumps(record.value) + "\n")
            mails.flush()
