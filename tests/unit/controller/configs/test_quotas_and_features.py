from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode
from moldau.controller.brokers.lifecycle import register_controller
from moldau.controller.configs.quotas import alter_client_quotas, describe_client_quotas
from moldau.controller.features import update_features
from moldau.metadata.features import supported_features
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from moldau.protocol.messages.controller_registration import ControllerRegistrationRequest, Feature
from moldau.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.protocol.stored.metadata import ConfigRecord, FeatureLevelRecord
from tests.unit.controller.harness import Cluster
from tests.unit.metadata.builders import uid

Entity = dict[str, str | None]
UPGRADE, SAFE, UNSAFE = 1, 2, 3


def entry(entity: Entity, **quotas: float | None) -> RequestEntryData:
    return RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0, remove=value is None) for key, value in quotas.items()],
    )


def alter(cluster: Cluster, *entries: RequestEntryData, validate_only: bool = False):
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    return cluster.decide(alter_client_quotas, request).entries


def describe(cluster: Cluster, *components: tuple[str, int, str | None], strict: bool = False):
    parts = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    request = DescribeClientQuotasRequest(components=parts, strict=strict)
    entries = describe_client_quotas(cluster.controller.image, request).entries or []
    return [
        ({part.entity_type: part.entity_name for part in e.entity}, {v.key: v.value for v in e.values})
        for e in entries
    ]


class TestQuotas:
    def test_a_quota_is_set_changed_and_removed(self) -> None:
        cluster = Cluster()
        user: Entity = {"user": "u", "client-id": None}
        (answer,) = alter(cluster, entry(user, producer_byte_rate=1024.0, request_percentage=12.5))
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
        assert describe(cluster) == [(user, {"producer_byte_rate": 1024.0, "request_percentage": 12.5})]
        alter(cluster, entry(user, producer_byte_rate=1024.0))
        assert cluster.records == []
        alter(cluster, entry(user, producer_byte_rate=None, consumer_byte_rate=None))
        assert len(cluster.records) == 1
        ((_, quotas),) = describe(cluster)
        assert quotas == {"request_percentage": 12.5}
        alter(cluster, entry(user, request_percentage=None))
        assert describe(cluster) == []

    def test_validate_only_writes_no_records(self) -> None:
        cluster = Cluster()
        alter(cluster, entry({"user": "u"}, producer_byte_rate=1.0), validate_only=True)
        assert describe(cluster) == []

    @pytest.mark.parametrize(
        ("entity", "quotas", "message"),
        [
            ({}, {}, "Invalid empty client quota entity"),
            ({"planet": "mars"}, {}, "Unhandled client quota entity type: planet"),
            ({"user": ""}, {}, "Empty user not supported"),
            ({"ip": "1.2.3.4", "user": "u"}, {}, "IP entity shouldnot be combined with User or ClientId"),
            ({"ip": "no address"}, {}, "no address is not a valid IP or resolvable host."),
            (
                {"user": "u"},
                {"connection_creation_rate": 1.0},
                "Invalid configuration key connection_creation",
            ),
            ({"ip": None}, {"producer_byte_rate": 1.0}, "Invalid configuration key producer_byte_rate"),
            ({"user": "u"}, {"producer_byte_rate": 0.0}, "Quota producer_byte_rate must be greater than 0"),
            ({"user": "u"}, {"producer_byte_rate": float("nan")}, "must be greater than 0"),
            ({"user": "u"}, {"producer_byte_rate": 1.5}, "producer_byte_rate cannot be a fractional value."),
            ({"user": "u"}, {"producer_byte_rate": 1e20}, "is too large for a LONG."),
            ({"ip": "::1"}, {"connection_creation_rate": 1e10}, "is too large for an INT."),
        ],
    )
    def test_invalid_quotas_are_refused(self, entity: Entity, quotas: dict[str, float], message: str) -> None:
        cluster = Cluster()
        (answer,) = alter(cluster, entry(entity, **quotas))
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert message in (answer.error_message or "")
        assert cluster.records == []

    def test_duplicate_entities_and_keys_are_refused(self) -> None:
        cluster = Cluster()
        twice = RequestEntryData(
            entity=[EntityData(entity_type="user", entity_name="u")],
            ops=[OpData(key="producer_byte_rate", value=1), OpData(key="producer_byte_rate", value=2)],
        )
        (answer,) = alter(cluster, twice)
        assert answer.error_message == (
            "Duplicate quota key producer_byte_rate not updating quota for this entity "
            "ClientQuotaEntity(entries={user=u})"
        )
        same = entry({"user": "v"}, producer_byte_rate=1.0)
        assert "Ignoring duplicate entity" in (alter(cluster, same, same)[1].error_message or "")

    def test_quotas_are_described_by_filter(self) -> None:
        cluster = Cluster()
        entities: list[Entity] = [
            {"user": "u"},
            {"user": None},
            {"user": "u", "client-id": "c"},
            {"client-id": "c"},
        ]
        for entity in entities:
            alter(cluster, entry(entity, producer_byte_rate=1.0))
        alter(cluster, entry({"ip": "1.2.3.4"}, connection_creation_rate=1.0))
        assert len(describe(cluster)) == 5
        assert len(describe(cluster, ("user", 0, "u"))) == 2
        assert len(describe(cluster, ("user", 0, "u"), strict=True)) == 1
        assert len(describe(cluster, ("user", 1, None))) == 1
        assert len(describe(cluster, ("user", 2, None))) == 3
        assert len(describe(cluster, ("user", 2, None), ("client-id", 2, None))) == 1
        assert len(describe(cluster, ("ip", 2, None))) == 1

    @pytest.mark.parametrize(
        ("components", "message"),
        [
            ([("", 2, None)], "Invalid empty entity type."),
            ([("user", 2, None), ("user", 2, None)], "cannot appear more than once"),
            ([("planet", 2, None)], "Unsupported entity type planet"),
            ([("user", 0, None)], "MATCH_TYPE_EXACT, but set match string to null"),
            ([("user", 1, "x")], "MATCH_TYPE_DEFAULT, but also specified"),
            ([("user", 2, "x")], "MATCH_TYPE_SPECIFIED, but also specified"),
            ([("user", 9, None)], "Unknown match type 9"),
            ([("ip", 2, None), ("user", 2, None)], "IP filter component should not be used with"),
        ],
    )
    def test_invalid_filters_are_refused(
        self, components: list[tuple[str, int, str | None]], message: str
    ) -> None:
        parts = [
            ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components
        ]
        request = DescribeClientQuotasRequest(components=parts)
        response = describe_client_quotas(Cluster().controller.image, request)
        assert response.entries is None
        assert response.error_code in (ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION)
        assert message in (response.error_message or "")


def update(
    cluster: Cluster,
    name: str,
    level: int,
    kind: int = UPGRADE,
    *,
    version: int = 2,
    validate_only: bool = False,
):
    request = UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)],
        validate_only=validate_only,
    )
    return cluster.decide(update_features, request, version=version)


class TestFeatures:
    def test_the_metadata_version_is_raised(self) -> None:
        cluster = Cluster(levels={"metadata.version": 28})
        assert update(cluster, "metadata.version", 29, validate_only=True).error_code == ErrorCode.NONE
        assert cluster.controller.image.features.metadata_version == 28
        response = update(cluster, "metadata.version", 30)
        assert (response.error_code, response.error_message, response.results) == (0, None, [])
        assert cluster.controller.image.features.metadata_version == 30

    def test_versions_before_2_have_a_result_per_feature(self) -> None:
        cluster = Cluster(levels={"metadata.version": 28})
        (result,) = update(cluster, "metadata.version", 29, version=1).results
        assert (result.feature, result.error_code, result.error_message) == ("metadata.version", 0, "NONE")

    @pytest.mark.parametrize(
        ("name", "level", "kind", "message"),
        [
            (
                "metadata.version",
                29,
                UPGRADE,
                "Invalid update version 29 for feature metadata.version. Can't downgrade the version of this "
                "feature without setting the upgrade type to either safe or unsafe downgrade.",
            ),
            (
                "metadata.version",
                29,
                SAFE,
                "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform the requested "
                "downgrade because it might delete metadata information.",
            ),
            ("metadata.version", 29, UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
            ("metadata.version", 31, UPGRADE, "Local controller 1 only supports versions 7-30"),
            ("streams.version", 2, UPGRADE, "Local controller 1 only supports versions 0-1"),
            ("nonsense", 1, UPGRADE, "Local controller 1 does not support this feature."),
            ("eligible.leader.replicas.version", -1, UPGRADE, "A feature version cannot be less than 0."),
            ("eligible.leader.replicas.version", 0, 7, "does not support the given upgrade type."),
            ("kraft.version", 0, SAFE, "Can't downgrade the version of this feature."),
        ],
    )
    def test_invalid_updates_are_refused(self, name: str, level: int, kind: int, message: str) -> None:
        response = update(Cluster(), name, level, kind)
        assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
        prefix = "The update failed for all features since the following feature had an error: "
        assert (response.error_message or "").startswith(prefix)
        assert message in (response.error_message or "")

    def test_a_safe_downgrade_loses_no_metadata(self) -> None:
        cluster = Cluster(levels={"metadata.version": 29})
        assert update(cluster, "metadata.version", 24, SAFE).error_code == ErrorCode.NONE
        assert cluster.controller.image.features.metadata_version == 24

    def test_version_0_allows_downgrades_by_a_flag(self) -> None:
        cluster = Cluster(levels={"metadata.version": 29})
        key = FeatureUpdateKey(feature="metadata.version", max_version_level=28, allow_downgrade=True)
        request = UpdateFeaturesRequest(feature_updates=[key])
        assert cluster.decide(update_features, request, version=0).error_code == ErrorCode.NONE

    def test_stored_levels_above_the_default_can_be_lowered(self) -> None:
        cluster = Cluster(levels={"streams.version": 1})
        assert update(cluster, "streams.version", 1).error_code == ErrorCode.NONE
        assert update(cluster, "streams.version", 0, SAFE).error_code == ErrorCode.NONE
        assert "streams.version" not in cluster.controller.image.features.levels

    def test_every_broker_must_support_the_level(self) -> None:
        cluster = Cluster(levels={"metadata.version": 28})
        from moldau.protocol.messages.broker_registration import Feature

        features = [
            Feature(
                name=name,
                min_supported_version=levels.min,
                max_supported_version=29 if name == "metadata.version" else levels.max,
            )
            for name, levels in supported_features({}).items()
        ]
        cluster.register(2, features=features)
        message = update(cluster, "metadata.version", 30).error_message or ""
        assert "Broker 2 only supports versions 7-29" in message

    def test_static_voters_must_be_registered(self) -> None:
        voters = "1@localhost:9093,2@localhost:9094"
        servers = {"controller_quorum_bootstrap_servers": "", "controller_quorum_voters": voters}
        cluster = Cluster(levels={"metadata.version": 28}, **servers)
        message = update(cluster, "metadata.version", 30).error_message or ""
        assert "controller 2 has not registered, and may not support this feature" in message
        features = [
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in supported_features({}).items()
        ]
        request = ControllerRegistrationRequest(controller_id=2, incarnation_id=uid(2), features=features)
        cluster.decide(register_controller, request)
        assert update(cluster, "metadata.version", 30).error_code == ErrorCode.NONE

    def test_enabling_elr_writes_min_insync_replicas(self) -> None:
        cluster = Cluster(levels={"eligible.leader.replicas.version": 0}, min_insync_replicas=2)
        cluster.alter(4, "1", ("min.insync.replicas", 0, "1"))
        assert update(cluster, "eligible.leader.replicas.version", 1).error_code == ErrorCode.NONE
        assert cluster.records == [
            ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2"),
            ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value=None),
            FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        ]

    def test_a_feature_requires_the_metadata_version(self) -> None:
        cluster = Cluster(levels={"metadata.version": 22, "eligible.leader.replicas.version": 0})
        message = update(cluster, "eligible.leader.replicas.version", 1).error_message or ""
        assert "because it depends on metadata.version level 23" in message
