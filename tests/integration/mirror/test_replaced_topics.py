"""Topics that are deleted, created again, or overtaken by retention: settings that MirrorMaker 2 lacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.base.ids import TopicPartition
from moldau.client.admin.client import AdminClient, checked
from moldau.client.admin.topic_types import NewTopic
from tests.harness.mirror import MirrorProcess, mm2_properties, produce, values_of
from tests.harness.waiting import eventually
from tests.integration.mirror.conftest import Pair
from tests.integration.mirror.test_groups import commit, committed


@pytest.fixture(scope="module")
def restarting(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MirrorProcess]:
    """A mirror that copies topics that were created again, and has its offset syncs on the target."""
    settings = {
        "k->l.topics": "again.*, gone.*",
        "source.topic.recreated": "restart",
        "source.records.missing": "stop",
        "offset-syncs.topic.location": "target",
        "sync.group.offsets.enabled": "true",
    }
    properties = mm2_properties(pair.a, pair.b, settings, source="k", target="l")
    with MirrorProcess(tmp_path_factory.mktemp("restarting"), properties) as process:
        yield process


def recreate(admin: AdminClient, topic: str) -> None:
    checked(admin.delete_topics([topic]))
    eventually(lambda: topic not in admin.list_topics())
    checked(admin.create_topics([NewTopic(topic, 1)]))


def wait_for(pair: Pair, topic: str, values: list[str], mirror: MirrorProcess) -> None:
    eventually(lambda: topic in pair.admin_b.list_topics(), what=mirror.log[-2000:])
    eventually(lambda: values_of(pair.b, topic) == values, what=mirror.log[-2000:])


def test_a_topic_created_again_is_copied_from_its_beginning(pair: Pair, restarting: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("again", 1)]))
    produce(pair.a, "again", ["1", "2", "3"])
    wait_for(pair, "k.again", ["1", "2", "3"], restarting)
    recreate(pair.admin_a, "again")
    produce(pair.a, "again", ["4", "5"])
    wait_for(pair, "k.again", ["1", "2", "3", "4", "5"], restarting)
    assert "again-0: the topic was deleted and created again" in restarting.log
    commit(pair.admin_a, "again-group", "again", 1)
    eventually(lambda: committed(pair.admin_b, "again-group", "k.again") == 4, what=restarting.log[-2000:])


def test_a_topic_created_again_while_the_mirror_is_down(pair: Pair, restarting: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("again-later", 1)]))
    produce(pair.a, "again-later", ["1", "2", "3"])
    wait_for(pair, "k.again-later", ["1", "2", "3"], restarting)
    restarting.stop()
    recreate(pair.admin_a, "again-later")
    produce(pair.a, "again-later", ["4", "5", "6", "7"])
    restarting.start()
    wait_for(pair, "k.again-later", ["1", "2", "3", "4", "5", "6", "7"], restarting)


def test_a_deleted_topic_stays_on_the_target(pair: Pair, restarting: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("gone", 1), NewTopic("gone-not", 1)]))
    produce(pair.a, "gone", ["1"])
    wait_for(pair, "k.gone", ["1"], restarting)
    checked(pair.admin_a.delete_topics(["gone"]))
    produce(pair.a, "gone-not", ["2"])
    wait_for(pair, "k.gone-not", ["2"], restarting)
    eventually(lambda: "partitions were deleted" in restarting.log)
    assert values_of(pair.b, "k.gone") == ["1"]


def test_a_partition_that_retention_overtook_stops(pair: Pair, restarting: MirrorProcess) -> None:
    checked(pair.admin_a.create_topics([NewTopic("gone-records", 1)]))
    produce(pair.a, "gone-records", ["0", "1"])
    wait_for(pair, "k.gone-records", ["0", "1"], restarting)
    restarting.stop()
    produce(pair.a, "gone-records", ["2", "3", "4"])
    checked(pair.admin_a.delete_records({TopicPartition("gone-records", 0): 4}))
    restarting.start()
    eventually(lambda: "gone-records-0 is not copied any more" in restarting.log, what=restarting.log[-2000:])
    assert "set source.records.missing=continue" in restarting.log
    produce(pair.a, "again", ["others continue"])
    eventually(lambda: values_of(pair.b, "k.again")[-1] == "others continue")
    assert values_of(pair.b, "k.gone-records") == ["0", "1"]
