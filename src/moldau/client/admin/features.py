"""Features of a cluster: supported and finalized levels, updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import moldau
from moldau.base.errors import ErrorCode, KafkaError
from moldau.client.wire.cluster import Cluster
from moldau.client.wire.errors import check, error_of
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    level: int
    type: UpgradeType


class LevelRange(NamedTuple):
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class FeatureDescription:
    """`epoch` is -1 if the node does not return it."""

    supported: dict[str, LevelRange]
    finalized: dict[str, int]
    epoch: int


async def describe_features(cluster: Cluster, node: int | None = None) -> FeatureDescription:
    """Describe the features, as seen by any node or by the given one."""
    request = ApiVersionsRequest(client_software_name="moldau", client_software_version=moldau.__version__)

    async def attempt() -> ApiVersionsResponse:
        answer: ApiVersionsResponse = await (
            cluster.ask_any(request) if node is None else cluster.ask_node(node, request)
        )
        check(answer.error_code)
        return answer

    answer = await cluster.retry(attempt)
    return FeatureDescription(
        {each.name: LevelRange(each.min_version, each.max_version) for each in answer.supported_features},
        {each.name: each.max_version_level for each in answer.finalized_features},
        answer.finalized_features_epoch,
    )


async def update_features(
    cluster: Cluster, updates: Mapping[str, FeatureUpdate], *, validate_only: bool = False
) -> dict[str, KafkaError | None]:
    request = UpdateFeaturesRequest(
        timeout_ms=cluster.settings.request_timeout_ms,
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=update.level, upgrade_type=update.type)
            for name, update in updates.items()
        ],
        validate_only=validate_only,
    )

    async def attempt() -> UpdateFeaturesResponse:
        answer: UpdateFeaturesResponse = await cluster.ask_controller(request)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            raise error_of(answer.error_code, answer.error_message)
        return answer

    answer = await cluster.retry(attempt)
    if answer.error_code:
        return dict.fromkeys(updates, error_of(answer.error_code, answer.error_message))
    named = {
        result.feature: error_of(result.error_code, result.error_message)
        for result in answer.results
        if result.error_code
    }
    return {name: named.get(name) for name in updates}
