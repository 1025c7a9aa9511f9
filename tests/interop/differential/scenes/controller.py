"""Admin requests that the controller listener serves, too: scenes of the broker listener, sent there.

A tool started with `--bootstrap-controller` uses it.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.interop.differential.broker import Broker
from tests.interop.differential.scenes import administration, cluster_administration, topics

Scene = Callable[[Broker], None]


def at_the_controller(scene: Scene) -> Scene:
    def run_at_the_controller(broker: Broker) -> None:
        broker.at_controller = True
        scene(broker)

    return run_at_the_controller


SCENES = {
    f"controller, {name}": at_the_controller(scene)
    for name, scene in {
        **topics.SCENES,
        **{
            name: cluster_administration.SCENES[name]
            for name in ("elect leaders", "reassignments", "update features", "client quotas")
        },
        "describe configs": administration.SCENES["describe configs"],
    }.items()
}
