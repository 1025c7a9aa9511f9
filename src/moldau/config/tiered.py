"""Rules between the topic configs of tiered storage, with Kafka's own messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.config.definition import ConfigError, ConfigValue, invalid_value

_ENABLE = "remote.storage.enable"
_COPY_DISABLE = "remote.log.copy.disable"
_DELETE_ON_DISABLE = "remote.log.delete.on.disable"
_AS_WHOLE, _UNLIMITED = -2, -1


def check_tiered_topic(
    values: Mapping[str, ConfigValue], existing: Mapping[str, str], *, system_enabled: bool
) -> None:
    """Raise `ConfigError` for topic configs that tiered storage does not allow.

    `values` are the typed configs as they will be, `existing` the present overrides of the topic.
    """
    if not values[_ENABLE]:
        if existing.get(_ENABLE, "false").lower() == "true" and not values[_DELETE_ON_DISABLE]:
            raise ConfigError(
                "It is invalid to disable remote storage without deleting remote data. If you want to keep "
                "the remote data and turn to read only, please set `remote.storage.enable=true,"
                "remote.log.copy.disable=true`. If you want to disable remote storage and delete all remote "
                "data, please set `remote.storage.enable=false,remote.log.delete.on.disable=true`."
            )
        return
    if not system_enabled:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    policy = values["cleanup.policy"]
    if policy and policy != ("delete",):
        raise ConfigError(
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an "
            "empty list."
        )
    for unit in ("bytes", "ms"):
        _check_local_retention(values, unit)
    if values[_COPY_DISABLE]:
        for unit in ("bytes", "ms"):
            whole, local = values[f"retention.{unit}"], values[f"local.retention.{unit}"]
            if local not in (_AS_WHOLE, whole):
                raise ConfigError(
                    f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and "
                    f"`retention.{unit}` must be set to the identical value because there will be no more "
                    "logs copied to the remote storage."
                )


def refuse_tiered_topics(configs: Iterable[tuple[str, Mapping[str, str]]]) -> None:
    """Raise `ConfigError` if a topic is tiered although tiered storage is disabled for the cluster.

    Its log would start with the first local record, and what is in the remote store would be lost.
    """
    for name, overrides in configs:
        if overrides.get(_ENABLE, "false").lower() == "true":
            raise ConfigError(
                "You have to delete all topics with the property remote.storage.enable=true before disabling "
                f"tiered storage cluster-wide; {name} is one of them."
            )


def _check_local_retention(values: Mapping[str, ConfigValue], unit: str) -> None:
    whole, local = values[f"retention.{unit}"], values[f"local.retention.{unit}"]
    if not isinstance(whole, int) or not isinstance(local, int):
        return
    if whole <= _UNLIMITED or local == _AS_WHOLE:
        return
    if local == _UNLIMITED:
        reason = f"Value must not be -1 as retention.{unit} value is set as {whole}."
        raise invalid_value(f"local.retention.{unit}", local, reason)
    if local > whole:
        reason = f"Value must not be more than retention.{unit} property value: {whole}"
        raise invalid_value(f"local.retention.{unit}", local, reason)
