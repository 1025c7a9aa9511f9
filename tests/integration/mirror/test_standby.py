"""Of several processes with the same configuration, one mirrors; another takes over when it ends."""

from __future__ import annotations

from pathlib import Path

from moldau.client.admin.client import checked
from moldau.client.admin.topic_types import NewTopic
from tests.harness.mirror import Feed, MirrorProcess, mm2_properties, values_of
from tests.harness.waiting import eventually
from tests.integration.mirror.conftest import SHORT_SESSION, Pair


def test_a_process_stands_by_and_takes_over(pair: Pair, tmp_path: Path) -> None:
    def copied() -> int:
        return len(values_of(pair.b, "v.shared"))

    settings = {"v->w.topics": "shared", "sync.topic.acls.enabled": "false", **SHORT_SESSION}
    properties = mm2_properties(pair.a, pair.b, settings, source="v", target="w")
    first, second = (MirrorProcess(_folder(tmp_path, name), properties) for name in ("first", "second"))
    checked(pair.admin_a.create_topics([NewTopic("shared", 1)]))
    feed = Feed(pair.a, "shared")
    try:
        first.start()
        second.start(ready="Standing by: another process mirrors v->w")
        eventually(lambda: copied() > 500, what=first.log)
        # Nothing is copied twice while both run.
        values = values_of(pair.b, "v.shared")
        assert len(values) == len(set(values))
        first.kill()
        before = copied()
        eventually(lambda: "Mirroring v->w" in second.log and copied() > before + 500, what=second.log)
        # The first one stands by now, and takes over at once when the second is stopped.
        first.start(ready="Standing by: another process mirrors v->w")
        second.stop()
        before = copied()
        eventually(lambda: copied() > before + 500, what=first.log)
    finally:
        produced = feed.stop()
        eventually(lambda: set(values_of(pair.b, "v.shared")) >= set(produced), what=first.log)
        for process in (first, second):
            process.kill()


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder
