"""Real nodes for your tests: `with Cluster() as cluster: ... cluster.bootstrap_servers`.

The pytest fixture `kafka_cluster` is available as soon as Moldau is installed. Every pytest run imports its
plugin from this package, so the package imports the cluster only when it is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.testing.cluster import Cluster, ClusterNode, NodeFailed

__all__ = ["Cluster", "ClusterNode", "NodeFailed"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from moldau.testing import cluster

    return getattr(cluster, name)
