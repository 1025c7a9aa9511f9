"""Creation and deletion of topics under faults: acknowledged changes persist."""

from __future__ import annotations

import itertools
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.waiting import eventually
from tests.integration.chaos.readers import Reader


class Administrator(Reader):
    """Create topics and delete every second one."""

    def run(self) -> None:
        self.made: set[str] = set()
        self.removed: set[str] = set()
        admin = AdminClient(self.access.librdkafka())
        for number in itertools.count(1):
            if self.stopping.is_set():
                return
            name = f"{self.name}-{number}"
            if self._done(admin.create_topics([NewTopic(name, 3, 3)], request_timeout=10)[name]):
                self.made.add(name)
                if number % 2 and self._done(admin.delete_topics([name], request_timeout=10)[name]):
                    self.removed.add(name)
                elif number % 2:
                    # The topic may be deleted or not.
                    self.made.discard(name)
            time.sleep(0.1)

    def _done(self, future: object) -> bool:
        try:
            future.result(20)  # type: ignore[attr-defined]
            return True
        except KafkaException as error:
            self.history.note(f"{self.name}: {error.args[0]}")
            return False

    def check(self) -> None:
        """Check that every broker has the created topics and none of the deleted ones."""
        for server in self.access.each_server:
            admin = AdminClient(server.librdkafka())

            def wrong(admin: AdminClient = admin) -> set[str]:
                there = set(admin.list_topics(timeout=20).topics)
                return (self.made - self.removed - there) | (self.removed & there)

            try:
                eventually(lambda: not wrong(), what=f"{server.bootstrap} knows all topics")
            except AssertionError:
                self.history.violation(
                    f"TOPICS: {server.bootstrap} differs from the acknowledged changes in {sorted(wrong())}"
                )
