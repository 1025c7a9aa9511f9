"""Flows that would copy records in a circle under the identity policy, which cannot recognise them by name.

The default policy needs no check: a topic names the clusters it came from. Of two opposite flows, topics that
both would mirror are left out (`TopicSelection.is_loop`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moldau.pipelines.mirror.config.definitions import MirrorConfigError
from moldau.pipelines.mirror.config.flow import Flow


def check_loops(flows: Sequence[Flow]) -> list[str]:
    """Refuse flows that copy the same topics in a circle; return warnings about those that may."""
    for flow in flows:
        opposite = flow.opposite_topics
        if opposite is not None and opposite == flow.topics:
            raise MirrorConfigError(
                f"{flow} and {flow.target}->{flow.source} mirror the same topics with "
                "IdentityReplicationPolicy: records would circulate forever. Give each flow topics of its "
                "own, or use DefaultReplicationPolicy."
            )
    identity = [flow for flow in flows if flow.policy.is_identity]
    warnings = []
    for circle in _circles(identity):
        names = " ".join(map(str, circle))
        if len({flow.topics for flow in circle}) == 1:
            raise MirrorConfigError(
                f"{names} mirror the same topics in a circle with IdentityReplicationPolicy: records would "
                "circulate forever. Leave out a flow, or use DefaultReplicationPolicy."
            )
        warnings.append(
            f"{names} form a circle with IdentityReplicationPolicy: a topic that all of them mirror would "
            "circulate forever"
        )
    return warnings


def _circles(flows: Sequence[Flow]) -> Iterator[list[Flow]]:
    """Yield circles of three flows or more, each once: from its smallest alias."""
    paths = [[flow] for flow in flows]
    while paths:
        path = paths.pop()
        first = path[0].source
        for flow in flows:
            visited = {each.source for each in path}
            if flow.source != path[-1].target or flow.source in visited or flow.source < first:
                continue
            if flow.target == first and len(path) > 1:
                yield [*path, flow]
            elif flow.target not in visited:
                paths.append([*path, flow])
