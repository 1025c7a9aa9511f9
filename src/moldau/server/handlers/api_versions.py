"""ApiVersions (key 18), versions 0 to 4: the APIs that this listener serves, and the cluster's features.

- 1: throttle time
- 2: on quota violation the broker responds before throttling (KIP-219)
- 3: flexible; client software name and version (KIP-511), features (KIP-584)
- 4: supported features may have a minimum level of 0

A version that is not served is answered in version 0 with UNSUPPORTED_VERSION (`dispatcher.py`).

Requires no permission.
"""

from __future__ import annotations

import re

from moldau.base.errors import ErrorCode
from moldau.metadata.features import KRAFT_VERSION, supported_features
from moldau.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher

_CLIENT_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
#: Kept as long as the connection, also before a login.
_MAX_CLIENT_SOFTWARE = 1_000
_CLIENT_SOFTWARE_SINCE = 3
#: Older clients fail on features whose minimum level is 0.
_ZERO_LEVELS_SINCE = 4


def handle(
    metadata: MetadataPublisher, quorum: MetadataQuorum, context: RequestContext, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    if context.api_version >= _CLIENT_SOFTWARE_SINCE:
        software = (request.client_software_name, request.client_software_version)
        if not all(map(_is_software, software)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.connection.client_software = software
    image = metadata.image
    levels = dict(image.features.levels)
    if quorum.kraft_version > 0:
        # The one level that is stored in the quorum's own records, not in the image.
        levels[KRAFT_VERSION] = quorum.kraft_version
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=served.announced_min_version, max_version=served.max_version)
            for key, served in sorted(context.listener.apis.items())
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=supported.min, max_version=supported.max)
            for name, supported in supported_features(levels).items()
            if supported.min > 0 or context.api_version >= _ZERO_LEVELS_SINCE
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in levels.items()
        ],
    )


def _is_software(word: str) -> bool:
    return len(word) <= _MAX_CLIENT_SOFTWARE and _CLIENT_SOFTWARE.fullmatch(word) is not None
