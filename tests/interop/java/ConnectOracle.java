import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Applies Kafka's transformations, predicates and converters to cases, one in JSON per line. */
@SuppressWarnings({"unchecked", "rawtypes"})
public class ConnectOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode one = JSON.readTree(line);
            JsonNode result;
            try {
                result = answer(one);
            } catch (Exception failure) {
                result = error(failure);
            }
            out.println("answer\t" + JSON.writeValueAsString(result));
        }
    }

    private static ObjectNode error(Exception failure) {
        return JSON.createObjectNode().put("error", failure.getClass().getName()).put("message", failure.getMessage());
    }

    private static JsonNode answer(JsonNode one) throws Exception {
        Map<String, Object> config = new HashMap<>();
        one.get("config").properties().forEach(entry -> config.put(entry.getKey(), entry.getValue().textValue()));
        Object plugin = Class.forName(one.get("class").textValue()).getDeclaredConstructor().newInstance();
        switch (one.get("kind").textValue()) {
            case "transform":
                return transformed((Transformation) plugin, config, one.get("records"));
            case "predicate":
                Predicate predicate = (Predicate) plugin;
                predicate.configure(config);
                ArrayNode verdicts = JSON.createArrayNode();
                for (JsonNode record : one.get("records"))
                    verdicts.add(predicate.test((ConnectRecord) record(record)));
                return verdicts;
            case "to_connect":
                Converter reader = (Converter) plugin;
                reader.configure(config, false);
                return pair(reader.toConnectData("topic", bytes(one.get("data"))));
            case "from_connect":
                Converter writer = (Converter) plugin;
                writer.configure(config, false);
                Schema schema = schema(one.get("schema"));
                return encoded(writer.fromConnectData("topic", schema, value(one.get("value"), schema)));
            case "to_header":
                return pair(((HeaderConverter) plugin).toConnectHeader("topic", "header", bytes(one.get("data"))));
            default:
                Schema of = schema(one.get("schema"));
                return encoded(((HeaderConverter) plugin)
                    .fromConnectHeader("topic", "header", of, value(one.get("value"), of)));
        }
    }

    private static JsonNode transformed(Transformation plugin, Map<String, Object> config, JsonNode records) {
        plugin.configure(config);
        ArrayNode results = JSON.createArrayNode();
        for (JsonNode record : records) {
            try {
                results.add(shown((ConnectRecord<?>) plugin.apply((ConnectRecord) record(record))));
            } catch (Exception failure) {
                results.add(error(failure));
            }
        }
        return results;
    }

    private static ConnectRecord<?> record(JsonNode node) {
        Schema keySchema = schema(node.get("key_schema"));
        Schema valueSchema = schema(node.get("value_schema"));
        Object key = value(node.get("key"), keySchema);
        Object value = value(node.get("value"), valueSchema);
        Long timestamp = node.get("timestamp").isNull() ? null : node.get("timestamp").longValue();
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : node.get("headers")) {
            Schema schema = schema(header.get(1));
            headers.add(header.get(0).textValue(), value(header.get(2), schema), schema);
        }
        String topic = node.get("topic").textValue();
        int partition = node.get("partition").intValue();
        if (node.get("source").booleanValue())
            return new SourceRecord(Map.of(), Map.of(), topic, partition, keySchema, key, valueSchema, value, timestamp, headers);
        return new SinkRecord(topic, partition, keySchema, key, valueSchema, value, node.get("offset").longValue(),
            timestamp, TimestampType.CREATE_TIME, headers);
    }

    private static JsonNode shown(ConnectRecord<?> record) {
        if (record == null)
            return JSON.nullNode();
        ObjectNode node = JSON.createObjectNode();
        node.put("topic", record.topic()).put("partition", record.kafkaPartition()).put("timestamp", record.timestamp());
        node.set("key_schema", shown(record.keySchema()));
        node.set("key", shown(record.key()));
        node.set("value_schema", shown(record.valueSchema()));
        node.set("value", shown(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers())
            headers.addArray().add(header.key()).add(shown(header.schema())).add(shown(header.value()));
        return node;
    }

    private static JsonNode pair(SchemaAndValue pair) {
        SchemaAndValue found = pair == null ? SchemaAndValue.NULL : pair;
        return JSON.createArrayNode().add(shown(found.schema())).add(shown(found.value()));
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : Base64.getDecoder().decode(node.textValue());
    }

    private static JsonNode encoded(byte[] data) {
        return data == null ? JSON.nullNode() : JSON.getNodeFactory().textNode(Base64.getEncoder().encodeToString(data));
    }

    private static Schema schema(JsonNode node) {
        if (node == null || node.isNull())
            return null;
        Schema.Type type = Schema.Type.valueOf(node.get("type").textValue());
        SchemaBuilder builder = type == Schema.Type.ARRAY ? SchemaBuilder.array(schema(node.get("values")))
            : type == Schema.Type.MAP ? SchemaBuilder.map(schema(node.get("keys")), schema(node.get("values")))
            : new SchemaBuilder(type);
        if (node.has("fields"))
            for (JsonNode field : node.get("fields"))
                builder.field(field.get(0).textValue(), schema(field.get(1)));
        if (node.get("optional").booleanValue())
            builder.optional();
        if (node.has("name"))
            builder.name(node.get("name").textValue());
        if (node.has("version"))
            builder.version(node.get("version").intValue());
        if (node.has("doc"))
            builder.doc(node.get("doc").textValue());
        if (node.has("parameters"))
            node.get("parameters").properties().forEach(one -> builder.parameter(one.getKey(), one.getValue().textValue()));
        if (node.has("default"))
            builder.defaultValue(value(node.get("default"), builder.build()));
        return builder.build();
    }

    private static JsonNode shown(Schema schema) {
        if (schema == null)
            return JSON.nullNode();
        ObjectNode node = JSON.createObjectNode().put("type", schema.type().name()).put("optional", schema.isOptional());
        if (schema.type() == Schema.Type.ARRAY || schema.type() == Schema.Type.MAP)
            node.set("values", shown(schema.valueSchema()));
        if (schema.type() == Schema.Type.MAP)
            node.set("keys", shown(schema.keySchema()));
        if (schema.type() == Schema.Type.STRUCT) {
            ArrayNode fields = node.putArray("fields");
            for (Field field : schema.fields())
                fields.addArray().add(field.name()).add(shown(field.schema()));
        }
        if (schema.name() != null)
            node.put("name", schema.name());
        if (schema.version() != null)
            node.put("version", schema.version());
        if (schema.doc() != null)
            node.put("doc", schema.doc());
        if (schema.parameters() != null)
            node.set("parameters", JSON.valueToTree(schema.parameters()));
        if (schema.defaultValue() != null)
            node.set("default", shown(schema.defaultValue()));
        return node;
    }

    /** A value is an object with one member: its kind. Integers have the width of their schema. */
    private static Object value(JsonNode node, Schema schema) {
        if (node == null || node.isNull())
            return null;
        String kind = node.fieldNames().next();
        JsonNode content = node.get(kind);
        switch (kind) {
            case "boolean":
                return content.booleanValue();
            case "integer":
                return integer(Long.parseLong(content.textValue()), schema);
            case "float":
                return schema != null && schema.type() == Schema.Type.FLOAT32
                    ? (Object) Float.parseFloat(content.textValue()) : (Object) Double.parseDouble(content.textValue());
            case "string":
                return content.textValue();
            case "bytes":
                return Base64.getDecoder().decode(content.textValue());
            case "decimal":
                return new BigDecimal(content.textValue());
            case "date":
                return new Date(content.longValue());
            case "list":
                List<Object> list = new ArrayList<>();
                for (JsonNode entry : content)
                    list.add(value(entry, schema == null ? null : schema.valueSchema()));
                return list;
            case "map":
                Map<Object, Object> map = new HashMap<>();
                for (JsonNode entry : content)
                    map.put(value(entry.get(0), schema == null ? null : schema.keySchema()),
                        value(entry.get(1), schema == null ? null : schema.valueSchema()));
                return map;
            default:
                Struct struct = new Struct(schema);
                for (JsonNode entry : content) {
                    Field field = schema.field(entry.get(0).textValue());
                    if (!entry.get(1).isNull())
                        struct.put(field, value(entry.get(1), field.schema()));
                }
                return struct;
        }
    }

    private static Object integer(long number, Schema schema) {
        if (schema == null)
            return number;
        switch (schema.type()) {
            case INT8:
                return (byte) number;
            case INT16:
                return (short) number;
            case INT32:
                return (int) number;
            default:
                return number;
        }
    }

    private static JsonNode shown(Object value) {
        if (value == null)
            return JSON.nullNode();
        ObjectNode node = JSON.createObjectNode();
        if (value instanceof Boolean)
            return node.put("boolean", (Boolean) value);
        if (value instanceof Float || value instanceof Double)
            return node.put("float", Double.toHexString(((Number) value).doubleValue()));
        if (value instanceof BigDecimal)
            return node.put("decimal", value.toString());
        if (value instanceof Number)
            return node.put("integer", value.toString());
        if (value instanceof String)
            return node.put("string", (String) value);
        if (value instanceof byte[])
            return node.put("bytes", Base64.getEncoder().encodeToString((byte[]) value));
        if (value instanceof ByteBuffer)
            return node.put("bytes", Base64.getEncoder().encodeToString(((ByteBuffer) value).array()));
        if (value instanceof Date)
            return node.put("date", ((Date) value).getTime());
        if (value instanceof List) {
            ArrayNode list = node.putArray("list");
            ((List<Object>) value).forEach(entry -> list.add(shown(entry)));
        } else if (value instanceof Map) {
            ArrayNode map = node.putArray("map");
            ((Map<Object, Object>) value).forEach((key, entry) -> map.addArray().add(shown(key)).add(shown(entry)));
        } else {
            ArrayNode fields = node.putArray("struct");
            Struct struct = (Struct) value;
            for (Field field : struct.schema().fields())
                fields.addArray().add(field.name()).add(shown(struct.getWithoutDefault(field.name())));
        }
        return node;
    }
}
