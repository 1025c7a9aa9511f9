"""The verdicts on real groups, the same on Moldau and on Apache Kafka."""

from __future__ import annotations

from moldau.lag.evaluation.rules import Status
from moldau.lag.monitor import LagMonitor
from tests.harness.lag.scene import LagScene


def stopped_and_recovered(scene: LagScene, monitor: LagMonitor) -> None:
    """A consumer keeps up, ends while records arrive, and is started again."""
    scene.start()
    fine = scene.until(monitor, Status.OK)
    assert fine.client_id == "reader"
    scene.close()
    stopped = scene.until(monitor, Status.STOP)
    assert stopped.lag and stopped.lag_seconds and stopped.lag_seconds > 0.5
    assert stopped.reason and "the group has no members" in stopped.reason
    scene.start()
    scene.until(monitor, Status.OK)


def stalled_and_resumed(scene: LagScene, monitor: LagMonitor) -> None:
    """A member stays in the group without reading."""
    scene.start()
    scene.until(monitor, Status.OK)
    scene.pause()
    stalled = scene.until(monitor, Status.STALL)
    assert stalled.member_id and stalled.client_id == "reader"
    assert stalled.reason and stalled.member_id in stalled.reason
    scene.resume()
    scene.until(monitor, Status.OK)


def slow(scene: LagScene, monitor: LagMonitor) -> None:
    """More records arrive than the consumer reads."""
    scene.start()
    scene.producing, scene.consuming = 20, 1
    warned = scene.until(monitor, Status.WARN)
    assert warned.lag and warned.reason and "records per second" in warned.reason
    scene.producing, scene.consuming = 0, 1000
    scene.until(monitor, Status.OK)


def rewound(scene: LagScene, monitor: LagMonitor) -> None:
    """The committed offset goes back, and is reached again."""
    scene.start()
    scene.produce(50)
    scene.until(monitor, Status.OK)
    before = dict(scene.consumed)
    scene.commit(dict.fromkeys(before, 3))
    rewound = scene.until(monitor, Status.REWIND, steps=False)
    assert rewound.reason and "went back" in rewound.reason and "to 3" in rewound.reason
    scene.commit(before)
    scene.until(monitor, Status.OK, steps=False)
