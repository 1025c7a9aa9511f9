"""The schemas of request and response bodies, by the names that routes use."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

_STRING: Final[Schema] = {"type": "string"}
_INTEGER: Final[Schema] = {"type": "integer"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_ANY: Final[Schema] = {"description": "Any JSON value."}
_NUMBER_OR_NULL: Final[Schema] = {"type": "integer", "nullable": True}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(*required: str, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def _enum(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _described(schema: Schema, text: str) -> Schema:
    return {**schema, "description": text}


_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_BASE64: Final[Schema] = {"type": "string", "format": "byte"}
_HEADERS: Final = _list(_object("name", name=_STRING, value={**_BASE64, "nullable": True}))
_CHANGE: Final = _object(
    "name", name=_STRING, value={"type": "string", "nullable": True}, operation=_enum("SET", "DELETE")
)
_PARTITION_V2: Final = _object("topic", "partition", topic=_STRING, partition=_INTEGER)
_PRODUCED: Final[dict[str, Schema]] = {
    "cluster_id": _STRING,
    "topic_name": _STRING,
    "partition_id": _INTEGER,
    "offset": _INTEGER,
    "timestamp": _TIME,
    "key": _ref("ProducedData"),
    "value": _ref("ProducedData"),
}
_RECORD: Final[dict[str, Schema]] = {
    "partition_id": _INTEGER,
    "headers": _HEADERS,
    "key": _ref("RecordData"),
    "value": _ref("RecordData"),
    "timestamp": _TIME,
}

_V2: Final[dict[str, Schema]] = {
    "ProduceV2": _object(
        "records",
        key_schema=_STRING,
        key_schema_id=_INTEGER,
        value_schema=_STRING,
        value_schema_id=_INTEGER,
        records=_list(_object(key=_ANY, value=_ANY, partition=_INTEGER)),
    ),
    "ProducedV2": _object(
        offsets=_list(
            _object(
                partition=_NUMBER_OR_NULL,
                offset=_NUMBER_OR_NULL,
                error_code=_NUMBER_OR_NULL,
                error={"type": "string", "nullable": True},
            )
        ),
        key_schema_id=_NUMBER_OR_NULL,
        value_schema_id=_NUMBER_OR_NULL,
    ),
    "ConsumerInstanceV2": _object(
        **{
            "name": _STRING,
            "format": _enum("binary", "json", "avro", "jsonschema", "protobuf"),
            "auto.offset.reset": _enum("earliest", "latest"),
            "auto.commit.enable": _enum("true", "false"),
            "fetch.min.bytes": _INTEGER,
            "consumer.request.timeout.ms": _INTEGER,
        }
    ),
    "SubscriptionV2": _object(topics=_list(_STRING), topic_pattern=_STRING),
    "PartitionsV2": _object("partitions", partitions=_list(_PARTITION_V2)),
    "OffsetsV2": _object(
        offsets=_list(
            _object(
                "topic",
                "partition",
                "offset",
                topic=_STRING,
                partition=_INTEGER,
                offset=_INTEGER,
                metadata=_STRING,
            )
        )
    ),
    "PositionsV2": _object(
        offsets=_list(
            _object(
                "topic",
                "partition",
                "offset",
                **_PARTITION_V2["properties"],
                offset=_INTEGER,
                metadata=_STRING,
            )
        ),
        timestamps=_list(
            _object("topic", "partition", "timestamp", **_PARTITION_V2["properties"], timestamp=_TIME)
        ),
    ),
}
_V3: Final[dict[str, Schema]] = {
    "Resource": _object(
        "kind",
        "metadata",
        kind=_STRING,
        metadata=_object("self", self={"type": "string", "format": "uri"}, resource_name=_STRING),
        cluster_id=_STRING,
    ),
    "Collection": _object(
        "kind",
        "metadata",
        "data",
        kind=_STRING,
        metadata=_object("self", self=_STRING, next={"type": "string", "nullable": True}),
        data=_list(_ref("Resource")),
    ),
    "Acl": _object(
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission",
        resource_type=_enum("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"),
        resource_name=_STRING,
        pattern_type=_enum("LITERAL", "PREFIXED"),
        principal=_STRING,
        host=_STRING,
        operation=_STRING,
        permission=_enum("ALLOW", "DENY"),
    ),
    "AclBatch": _object("data", data=_list(_ref("Acl"))),
    "AclList": _object("data", data=_list(_ref("Acl"))),
    "Config": _object(value={"type": "string", "nullable": True}),
    "Alter": _object("data", data=_list(_CHANGE), validate_only=_BOOLEAN),
    "AlterTopics": _object(
        "data",
        data=_list(_object("topic_name", "configs", topic_name=_STRING, configs=_list(_CHANGE))),
        validate_only=_BOOLEAN,
    ),
    "CreateTopic": _object(
        "topic_name",
        topic_name=_STRING,
        partitions_count=_INTEGER,
        replication_factor=_INTEGER,
        replicas_assignments={"type": "object", "additionalProperties": _list(_INTEGER)},
        configs=_list(_object("name", name=_STRING, value=_STRING)),
        validate_only=_BOOLEAN,
    ),
    "PartitionCount": _object("partitions_count", partitions_count=_INTEGER),
    "RecordData": _object(
        type=_enum("BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"),
        subject=_STRING,
        subject_name_strategy=_enum("TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME"),
        schema_id=_INTEGER,
        schema_version=_INTEGER,
        schema=_STRING,
        data=_ANY,
    ),
    "ProduceRecord": _described(
        _object(**_RECORD), "One record, or several after each other; one result for each."
    ),
    "ProducedData": _object(
        type=_STRING, subject=_STRING, schema_id=_INTEGER, schema_version=_INTEGER, size=_INTEGER
    ),
    "ProducedRecord": _object("error_code", error_code=_INTEGER, message=_STRING, **_PRODUCED),
    "ProduceBatch": _object("entries", entries=_list(_object("id", id=_STRING, **_RECORD))),
    "ProducedBatch": _object(
        successes=_list(_object("id", id=_STRING, **_PRODUCED)),
        failures=_list(_object("id", "error_code", id=_STRING, error_code=_INTEGER, message=_STRING)),
    ),
    "ConsumedData": _object(
        "type",
        "data",
        type=_enum("BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF"),
        schema_id=_NUMBER_OR_NULL,
        data=_ANY,
        error=_described(_STRING, "Why the data is not of the type that was asked for."),
    ),
    "ConsumedRecord": _described(
        _object(
            "topic_name",
            "partition_id",
            "offset",
            topic_name=_STRING,
            partition_id=_INTEGER,
            offset=_INTEGER,
            timestamp={**_TIME, "nullable": True},
            timestamp_type={**_enum("CREATE_TIME", "LOG_APPEND_TIME"), "nullable": True},
            headers=_HEADERS,
            key={"nullable": True, "allOf": [_ref("ConsumedData")]},
            value={"nullable": True, "allOf": [_ref("ConsumedData")]},
        ),
        "One line or event for each record. A stream that fails ends with an error_code and a message.",
    ),
    "CommittedOffsets": _described(
        _object(
            "offsets",
            offsets=_list(
                {
                    **_object(
                        "topic_name",
                        "partition_id",
                        "offset",
                        topic_name=_STRING,
                        partition_id=_INTEGER,
                        offset=_INTEGER,
                    ),
                    # Records as they were read.
                    "additionalProperties": True,
                }
            ),
        ),
        "The last records that were processed; the offsets after them are committed.",
    ),
}
SCHEMAS: Final[dict[str, Schema]] = {
    "Error": _object("error_code", "message", error_code=_INTEGER, message=_STRING),
    **_V2,
    **_V3,
}
