"""UpdateFeatures: changes of finalized feature levels (KIP-584)."""

from __future__ import annotations

from collections.abc import Callable

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.configs.checks import MIN_ISR
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.features import (
    CONTROLLER_REGISTRATION_SUPPORTED,
    ELR_VERSION,
    FEATURES,
    KRAFT_VERSION,
    MAX_METADATA_VERSION,
    METADATA_VERSION,
    MIN_METADATA_VERSION,
    VersionRange,
    metadata_would_be_lost,
    missing_requirement,
    supported_features,
)
from moldau.metadata.image import ResourceType
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from moldau.protocol.stored.metadata import ConfigRecord, FeatureLevelRecord
from moldau.statemachine.decision import Decision

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_UNSUPPORTED = VersionRange(0, 0)


def update_features(
    state: ControllerState, request: UpdateFeaturesRequest, context: DecisionContext
) -> Decision[MetadataRecord, UpdateFeaturesResponse]:
    """Make all updates or none: an invalid update fails the whole request."""
    version = context.api_version
    records: list[MetadataRecord] = []
    try:
        metadata_version = _proposed_metadata_version(state, request)
        for update in request.feature_updates:
            records += _update(state, update, metadata_version, version)
    except KafkaError as error:
        failure = "The update failed for all features since the following feature had an error: "
        return Decision([], UpdateFeaturesResponse(error_code=error.code, error_message=f"{failure}{error}"))
    response = UpdateFeaturesResponse(error_message=None)
    if version <= 1:
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message="NONE")
            for update in request.feature_updates
        ]
    records = [] if request.validate_only else _safely(state, request, records)
    return Decision(records, response, on_appended=_kraft_upgrade(state, request))


def _proposed_metadata_version(state: ControllerState, request: UpdateFeaturesRequest) -> int:
    levels = {update.feature: update.max_version_level for update in request.feature_updates}
    return levels.get(METADATA_VERSION, state.metadata_version)


def _update(
    state: ControllerState, update: FeatureUpdateKey, metadata_version: int, version: int
) -> list[MetadataRecord]:
    name, level = update.feature, update.max_version_level
    upgrade_type = update.upgrade_type
    if version == 0:
        upgrade_type = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(name, level, "A feature version cannot be less than 0.")
    _check_supported(state, name, level)
    current = state.kraft_version if name == KRAFT_VERSION else state.image.features.level(name)
    if level < current and upgrade_type == UPGRADE:
        raise _invalid(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        )
    if level > current and upgrade_type != UPGRADE:
        raise _invalid(name, level, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_metadata_version(current, level, upgrade_type)
    elif name == KRAFT_VERSION:
        _check_kraft_version(state, current, level)
        return []
    else:
        problem = missing_requirement(name, level, metadata_version)
        if problem is not None:
            raise _invalid(name, level, problem)
    return [FeatureLevelRecord(name=name, feature_level=level)]


def _invalid(name: str, level: int, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {reason}"
    )


def _check_supported(state: ControllerState, name: str, level: int) -> None:
    """Check that all brokers and controllers support the level."""
    if name not in FEATURES:
        raise _invalid(name, level, f"Local controller {state.node_id} does not support this feature.")
    local = supported_features(state.image.features.levels)
    nodes = [(f"Local controller {state.node_id}", local)]
    cluster = state.image.cluster
    nodes += [(f"Broker {broker.id}", dict(broker.features)) for broker in cluster.brokers.values()]
    nodes += [
        (f"Controller {controller.id}", dict(controller.features))
        for controller in cluster.controllers.values()
        if controller.id != state.node_id
    ]
    for node, supported in nodes:
        levels = supported.get(name, _UNSUPPORTED)
        if levels.supports(level):
            continue
        if levels.max == 0:
            raise _invalid(name, level, f"{node} does not support this feature.")
        raise _invalid(name, level, f"{node} only supports versions {levels}")
    _check_voters(state, name, level)


def _check_voters(state: ControllerState, name: str, level: int) -> None:
    """Check that every static voter is registered, so that its supported levels are known."""
    if state.metadata_version < CONTROLLER_REGISTRATION_SUPPORTED:
        return
    known = {state.node_id, *state.image.cluster.controllers}
    for voter in state.config.quorum_voters:
        if voter.node_id not in known:
            raise _invalid(
                name,
                level,
                f"controller {voter.node_id} has not registered, and may not support this feature",
            )


def _check_metadata_version(current: int, level: int, upgrade_type: int) -> None:
    if not MIN_METADATA_VERSION <= level <= MAX_METADATA_VERSION:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Invalid metadata.version {level}. Valid versions are from {MIN_METADATA_VERSION} to "
            f"{MAX_METADATA_VERSION}.",
        )
    if level < current and metadata_would_be_lost(current, level):
        reason = (
            "Unsafe metadata downgrade is not supported in this version."
            if upgrade_type == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
        )


def _check_kraft_version(state: ControllerState, current: int, level: int) -> None:
    """Check `kraft.version`, which the quorum stores: only it knows whether all voters support it."""
    if level < current:
        raise _invalid(KRAFT_VERSION, level, "Can't downgrade the version of this feature.")
    if level > current and state.upgrade_quorum is not None:
        state.upgrade_quorum(level, True)


def _kraft_upgrade(state: ControllerState, request: UpdateFeaturesRequest) -> Callable[[], None] | None:
    """Return the change of `kraft.version` to make once the request is decided."""
    levels = {update.feature: update.max_version_level for update in request.feature_updates}
    level, upgrade = levels.get(KRAFT_VERSION, 0), state.upgrade_quorum
    if request.validate_only or upgrade is None or level <= state.kraft_version:
        return None

    def then() -> None:
        upgrade(level, False)
        state.kraft_version = level

    return then


def _safely(
    state: ControllerState, request: UpdateFeaturesRequest, records: list[MetadataRecord]
) -> list[MetadataRecord]:
    """Return the records; with ELR `min.insync.replicas` must be set at cluster level only."""
    levels = {update.feature: update.max_version_level for update in request.feature_updates}
    if levels.get(ELR_VERSION, 0) < 1:
        return records
    settings: list[MetadataRecord] = []
    if MIN_ISR not in state.image.default_broker_config():
        settings.append(_min_isr("", str(state.static_min_isr)))
    for resource, configs in state.image.configs.items():
        if resource.type == ResourceType.BROKER and resource.name and MIN_ISR in configs:
            settings.append(_min_isr(resource.name, None))
    return settings + records


def _min_isr(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name=broker, name=MIN_ISR, value=value)
