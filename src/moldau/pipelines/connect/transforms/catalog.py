"""Kafka's transformations and predicates by the names of their Java classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from moldau.pipelines.connect.config.definition import ConfigDef
from moldau.pipelines.connect.transforms.cast import Cast
from moldau.pipelines.connect.transforms.flatten import Flatten
from moldau.pipelines.connect.transforms.headers import DropHeaders, HeaderFrom, InsertHeader
from moldau.pipelines.connect.transforms.insert_field import InsertField
from moldau.pipelines.connect.transforms.interface import Part, Predicate, Transformation
from moldau.pipelines.connect.transforms.mask_field import MaskField
from moldau.pipelines.connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from moldau.pipelines.connect.transforms.replace_field import ReplaceField
from moldau.pipelines.connect.transforms.routers import Filter, RegexRouter, TimestampRouter
from moldau.pipelines.connect.transforms.schema_metadata import SetSchemaMetadata
from moldau.pipelines.connect.transforms.single_field import ExtractField, HoistField
from moldau.pipelines.connect.transforms.timestamp_converter import TimestampConverter
from moldau.pipelines.connect.transforms.value_to_key import ValueToKey

_PACKAGE = "org.apache.kafka.connect.transforms"
_OF_A_PART = (
    Cast,
    ExtractField,
    Flatten,
    HeaderFrom,
    HoistField,
    InsertField,
    MaskField,
    ReplaceField,
    SetSchemaMetadata,
    TimestampConverter,
)
_OF_THE_RECORD = (DropHeaders, Filter, InsertHeader, RegexRouter, TimestampRouter, ValueToKey)
_PREDICATES = (HasHeaderKey, RecordIsTombstone, TopicNameMatches)

#: Name of the Java class → a function that creates the transformation.
TRANSFORMATIONS: dict[str, Callable[[], Transformation]] = {
    f"{_PACKAGE}.{cls.__name__}${part.value}": partial(cls, part) for cls in _OF_A_PART for part in Part
} | {f"{_PACKAGE}.{cls.__name__}": cls for cls in _OF_THE_RECORD}

#: Name of the Java class → the predicate.
PREDICATES: dict[str, Callable[[], Predicate]] = {
    f"{_PACKAGE}.predicates.{cls.__name__}": cls for cls in _PREDICATES
}

#: The settings of each of them.
DEFINITIONS: dict[str, ConfigDef] = {
    name: create().config for name, create in (TRANSFORMATIONS | PREDICATES).items()
}
