"""Clients that register schemas concurrently, and the check that no id is lost or given twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.harness.registry.instances import DISCONNECTED, Instance


class Acknowledged(NamedTuple):
    """A registration that was answered with success."""

    subject: str
    text: str
    schema_id: int
    version: int


class Load:
    """Clients that register a new schema after another, each at the instances in turn, until `stop`.

    A client that gets no answer, or an error, tries the same schema at the next instance. Half of the
    schemas are registered under two subjects.
    """

    def __init__(self, instances: Sequence[Instance], clients: int = 4) -> None:
        self.acknowledged: list[Acknowledged] = []
        #: Error codes of refused requests.
        self.refused: list[int] = []
        self._instances = instances
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self, client: int) -> None:
        number = 0
        while not self._stopping.is_set():
            text = f'{{"type":"enum","name":"E{client}_{number}","symbols":["A"]}}'
            for subject in (f"client-{client}", f"shared-{number % 3}")[: 1 + number % 2]:
                self._register(subject, text, client + number)
            number += 1

    def _register(self, subject: str, text: str, first: int) -> None:
        turn = first
        while not self._stopping.is_set():
            instance = self._instances[turn % len(self._instances)]
            turn += 1
            try:
                answer = instance.register(subject, text)
            except DISCONNECTED:
                continue
            if answer.status == 200:
                reply = answer.json
                self.acknowledged.append(Acknowledged(subject, text, reply["id"], reply["version"]))
                return
            self.refused.append(answer.json["error_code"])


def verify(load: Load, instance: Instance) -> None:
    """Check all that was acknowledged at an instance: every registration, each id with one schema."""
    assert load.acknowledged
    stored = {
        (each["subject"], each["version"]): (each["id"], each["schema"]) for each in _all_schemas(instance)
    }
    for each in load.acknowledged:
        found = stored.get((each.subject, each.version))
        assert found == (each.schema_id, each.text), each
    pairs = set(stored.values())
    assert len({schema_id for schema_id, _ in pairs}) == len({text for _, text in pairs}) == len(pairs)


def _all_schemas(instance: Instance) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = instance.ask("GET", f"/schemas?offset={len(found)}&limit=1000").json
        found += page
        if len(page) < 1000:
            return found
