"""The configs of share groups: whether they are enabled, and the limits of single groups."""

from __future__ import annotations

import re
from collections.abc import Mapping

from moldau.base.errors import ErrorCode, KafkaError
from moldau.config.group import GROUP_CONFIGS
from moldau.groups.settings import GroupSettings
from moldau.metadata.features import SHARE_VERSION
from moldau.metadata.image import ConfigResource, ResourceType
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings
from moldau.share.partition_state import ShareLimits

_DURATION = re.compile(r"\+?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d*)?)S)?)?", re.IGNORECASE)
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000)


class ShareGroupConfigs:
    """The effective configs of share groups."""

    def __init__(self, settings: NodeSettings, metadata: MetadataPublisher) -> None:
        self._settings = settings
        self._metadata = metadata

    def check_enabled(self) -> None:
        """Raise UNSUPPORTED_VERSION unless the feature `share.version` enables share groups."""
        if self._metadata.image.features.level(SHARE_VERSION) < 1:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    def limits(self, group_id: str) -> ShareLimits:
        settings, image = GroupSettings.from_config(self._settings.config), self._metadata.image
        return ShareLimits(
            delivery_count=settings.of_group(image, group_id, "share.delivery.count.limit"),
            record_locks=settings.of_group(image, group_id, "share.partition.max.record.locks"),
            lock_ms=settings.of_group(image, group_id, "share.record.lock.duration.ms"),
            renewal=self._config(group_id, "share.renew.acknowledge.enable").lower() == "true",
        )

    def reads_committed(self, group_id: str) -> bool:
        return self._config(group_id, "share.isolation.level").lower() == "read_committed"

    def offset_reset(self, group_id: str) -> str:
        """Return `share.auto.offset.reset`: `earliest`, `latest` or `by_duration:<ISO 8601 duration>`."""
        return self._config(group_id, "share.auto.offset.reset")

    def _config(self, group_id: str, name: str) -> str:
        resource = ConfigResource(ResourceType.GROUP, group_id)
        configs: Mapping[str, str] = self._metadata.image.configs.get(resource, {})
        return configs[name] if name in configs else str(GROUP_CONFIGS[name].default)


def duration_ms(text: str) -> int:
    """Parse an ISO 8601 duration; config validation has checked its form."""
    found = _DURATION.fullmatch(text)
    numbers = found.groups() if found is not None else ()
    return int(
        sum(
            float(number.replace(",", ".")) * unit
            for number, unit in zip(numbers, _UNITS_MS, strict=False)
            if number
        )
    )
