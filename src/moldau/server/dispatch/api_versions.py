"""What a listener announces: its table of APIs and the cluster's features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.metadata.features import KRAFT_VERSION, supported_features
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from moldau.server.dispatch.apis import ServedApi

#: Before this version of the response, clients choke on features whose lowest level is 0.
_ZERO_LEVELS_SINCE = 4


def api_versions_response(
    version: int, table: Mapping[int, ServedApi], image: MetadataImage, kraft_version: int
) -> ApiVersionsResponse:
    """`kraft_version` is the one level that is not in the image: the quorum keeps it in its own records."""
    levels = dict(image.features.levels)
    if kraft_version > 0:
        levels[KRAFT_VERSION] = kraft_version
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=served.announced_min_version, max_version=served.max_version)
            for key, served in sorted(table.items())
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=supported.min, max_version=supported.max)
            for name, supported in supported_features(levels).items()
            if supported.min > 0 or version >= _ZERO_LEVELS_SINCE
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in levels.items()
        ],
    )
