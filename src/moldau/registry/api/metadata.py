"""`/` and `/v1/metadata`: which server this is."""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.registry.api.call import Call, Route
from moldau.registry.state.registry import Decision, Registry


@dataclass(frozen=True, slots=True)
class ServerMetadata:
    """What the registry tells about itself."""

    kafka_cluster_id: str = ""
    group_id: str = "schema-registry"
    version: str = ""
    commit_id: str = ""
    attributes: tuple[str, ...] = field(default=())


def metadata_routes(metadata: ServerMetadata) -> tuple[Route, ...]:
    clusters = {"kafka-cluster": metadata.kafka_cluster_id, "schema-registry-cluster": metadata.group_id}

    def root(registry: Registry, call: Call) -> Decision:
        return Decision((), {})

    def server_id(registry: Registry, call: Call) -> Decision:
        return Decision((), {"scope": {"path": [], "clusters": clusters}})

    def version(registry: Registry, call: Call) -> Decision:
        return Decision((), {"version": metadata.version, "commitId": metadata.commit_id})

    def deployment(registry: Registry, call: Call) -> Decision:
        return Decision((), {"attributes": list(metadata.attributes)})

    return (
        Route("GET", "/", "Get an empty object", root),
        Route("POST", "/", "Get an empty object", root),
        Route("GET", "/v1/metadata/id", "Get the ids of the clusters", server_id),
        Route("GET", "/v1/metadata/version", "Get the version of the server", version),
        Route("GET", "/v1/metadata/deployment", "Get attributes of the deployment", deployment),
    )
