"""The converters by the names of their Java classes. A class is imported when it is first used."""

from __future__ import annotations

_OURS = "moldau.pipelines.connect.converters"

#: Name of the Java class → module and class.
CONVERTERS: dict[str, str] = {
    "org.apache.kafka.connect.json.JsonConverter": f"{_OURS}.json.converter:JsonConverter",
    "org.apache.kafka.connect.storage.StringConverter": f"{_OURS}.primitive:StringConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter": f"{_OURS}.primitive:ByteArrayConverter",
    "org.apache.kafka.connect.converters.BooleanConverter": f"{_OURS}.primitive:BooleanConverter",
    "org.apache.kafka.connect.converters.ShortConverter": f"{_OURS}.primitive:ShortConverter",
    "org.apache.kafka.connect.converters.IntegerConverter": f"{_OURS}.primitive:IntegerConverter",
    "org.apache.kafka.connect.converters.LongConverter": f"{_OURS}.primitive:LongConverter",
    "org.apache.kafka.connect.converters.FloatConverter": f"{_OURS}.primitive:FloatConverter",
    "org.apache.kafka.connect.converters.DoubleConverter": f"{_OURS}.primitive:DoubleConverter",
    "io.confluent.connect.avro.AvroConverter": f"{_OURS}.registry.avro.converter:AvroConverter",
    "io.confluent.connect.json.JsonSchemaConverter": (
        f"{_OURS}.registry.json_schema.converter:JsonSchemaConverter"
    ),
    "io.confluent.connect.protobuf.ProtobufConverter": (
        f"{_OURS}.registry.protobuf.converter:ProtobufConverter"
    ),
}
#: Converters of headers; all others convert headers, too.
HEADER_CONVERTERS: dict[str, str] = {
    "org.apache.kafka.connect.storage.SimpleHeaderConverter": f"{_OURS}.simple_headers:SimpleHeaderConverter",
}
