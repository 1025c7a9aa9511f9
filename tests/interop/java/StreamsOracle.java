import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * What the real Kafka Streams makes of a program, without a broker.
 *
 * Each argument is a program: names of scenes, with commas between them, which share one builder. A scene named
 * `x` reads topics that begin with `x-` and writes topics that end in `-out`. The input comes from stdin, one record
 * a line: topic, key, value (`~` is null), timestamp, with tabs. Answers: `describe`, program, line; and `record`,
 * program, topic, key, value, timestamp for everything written, keys and values in hexadecimal.
 */
public class StreamsOracle {
    static final Serde<String> TEXT = Serdes.String();
    static final Consumed<String, String> IN = Consumed.with(TEXT, TEXT);
    static final Produced<String, String> OUT = Produced.with(TEXT, TEXT);
    static final Produced<String, Long> COUNTS = Produced.with(TEXT, Serdes.Long());
    static final Grouped<String, String> GROUPED = Grouped.with(TEXT, TEXT);
    static final Duration SECOND = Duration.ofSeconds(1);
    static final Map<String, Consumer<StreamsBuilder>> SCENES = new TreeMap<>();

    record Line(String topic, String key, String value, long timestamp) {}

    static Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept(String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name).withKeySerde(TEXT).withValueSerde(TEXT);
    }

    static Materialized<String, Long, KeyValueStore<Bytes, byte[]>> counted(String name) {
        return Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(name)
            .withKeySerde(TEXT).withValueSerde(Serdes.Long());
    }

    static Materialized<String, Long, WindowStore<Bytes, byte[]>> windowCounts(String name) {
        return Materialized.<String, Long, WindowStore<Bytes, byte[]>>as(name)
            .withKeySerde(TEXT).withValueSerde(Serdes.Long());
    }

    static Materialized<String, String, WindowStore<Bytes, byte[]>> windowTexts(String name) {
        return Materialized.<String, String, WindowStore<Bytes, byte[]>>as(name).withKeySerde(TEXT).withValueSerde(TEXT);
    }

    static Materialized<String, Long, SessionStore<Bytes, byte[]>> sessionCounts(String name) {
        return Materialized.<String, Long, SessionStore<Bytes, byte[]>>as(name)
            .withKeySerde(TEXT).withValueSerde(Serdes.Long());
    }

    static <V> Produced<org.apache.kafka.streams.kstream.Windowed<String>, V> windowed(Serde<V> values, long sizeMs) {
        return Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, sizeMs), values);
    }

    static <V> Produced<org.apache.kafka.streams.kstream.Windowed<String>, V> sessions(Serde<V> values) {
        return Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), values);
    }

    static int number(String value) {
        return Integer.parseInt(value.substring(1));
    }

    static void stateless() {
        SCENES.put("map", b -> b.stream("map-in", IN)
            .map((k, v) -> KeyValue.pair(k.toUpperCase(), v + "!")).to("map-out", OUT));
        SCENES.put("map-values", b -> b.stream("map-values-in", IN)
            .mapValues(v -> v + "!").mapValues((k, v) -> k + v).to("map-values-out", OUT));
        SCENES.put("filter", b -> b.stream("filter-in", IN)
            .filter((k, v) -> number(v) % 2 == 0).filterNot((k, v) -> k.equals("a")).to("filter-out", OUT));
        SCENES.put("flat-map", b -> b.stream("flat-map-in", IN)
            .flatMap((k, v) -> List.of(KeyValue.pair(k, v), KeyValue.pair(k + k, v)))
            .flatMapValues(v -> number(v) % 3 == 0 ? List.of() : List.of(v + "x", v + "y")).to("flat-map-out", OUT));
        SCENES.put("branch", b -> {
            var branches = b.stream("branch-in", IN).split(Named.as("split-"))
                .branch((k, v) -> k.equals("a"), Branched.as("first"))
                .branch((k, v) -> number(v) % 2 == 0, Branched.as("second"))
                .defaultBranch(Branched.as("rest"));
            branches.get("split-first").to("branch-first-out", OUT);
            branches.get("split-second").to("branch-second-out", OUT);
            branches.get("split-rest").mapValues(v -> v + "r").to("branch-rest-out", OUT);
        });
        SCENES.put("merge", b -> b.stream("merge-left", IN).merge(b.stream("merge-right", IN)).to("merge-out", OUT));
        SCENES.put("select-key", b -> b.stream("select-key-in", IN)
            .selectKey((k, v) -> v.substring(0, 1) + k).peek((k, v) -> { }).to("select-key-out", OUT));
        SCENES.put("repartition", b -> b.stream("repartition-in", IN).selectKey((k, v) -> v)
            .repartition(org.apache.kafka.streams.kstream.Repartitioned.with(TEXT, TEXT)).to("repartition-out", OUT));
    }

    static void aggregations() {
        SCENES.put("count", b -> b.stream("count-in", IN).groupByKey(GROUPED).count(counted("count-store"))
            .toStream().to("count-out", COUNTS));
        SCENES.put("count-unnamed", b -> b.stream("count-unnamed-in", IN).groupByKey(GROUPED).count()
            .toStream().to("count-unnamed-out", COUNTS));
        SCENES.put("group-by", b -> b.stream("group-by-in", IN)
            .groupBy((k, v) -> "n" + number(v) % 3, GROUPED).count(counted("group-by-store"))
            .toStream().to("group-by-out", COUNTS));
        SCENES.put("select-key-count", b -> b.stream("select-key-count-in", IN)
            .selectKey((k, v) -> v.substring(0, 1) + k).groupByKey(Grouped.<String, String>as("chosen")
                .withKeySerde(TEXT).withValueSerde(TEXT)).count().toStream().to("select-key-count-out", COUNTS));
        SCENES.put("reduce", b -> b.stream("reduce-in", IN).groupByKey(GROUPED)
            .reduce((one, two) -> one + "," + two, kept("reduce-store")).toStream().to("reduce-out", OUT));
        SCENES.put("aggregate", b -> b.stream("aggregate-in", IN).groupByKey(GROUPED)
            .aggregate(() -> "", (k, v, sum) -> sum + v, kept("aggregate-store")).toStream().to("aggregate-out", OUT));
        SCENES.put("tumbling", b -> b.stream("tumbling-in", IN).groupByKey(GROUPED)
            .windowedBy(TimeWindows.ofSizeAndGrace(SECOND, SECOND)).count(windowCounts("tumbling-store"))
            .toStream().to("tumbling-out", windowed(Serdes.Long(), 1000)));
        SCENES.put("hopping", b -> b.stream("hopping-in", IN).groupByKey(GROUPED)
            .windowedBy(TimeWindows.ofSizeAndGrace(SECOND, SECOND).advanceBy(Duration.ofMillis(400)))
            .reduce((one, two) -> one + "," + two, windowTexts("hopping-store"))
            .toStream().to("hopping-out", windowed(TEXT, 1000)));
        SCENES.put("sliding", b -> b.stream("sliding-in", IN).groupByKey(GROUPED)
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(SECOND, Duration.ofSeconds(30)))
            .aggregate(() -> "", (k, v, sum) -> sum + v, windowTexts("sliding-store"))
            .toStream().to("sliding-out", windowed(TEXT, 1000)));
        SCENES.put("session", b -> b.stream("session-in", IN).groupByKey(GROUPED)
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(SECOND, SECOND)).count(sessionCounts("session-store"))
            .toStream().to("session-out", sessions(Serdes.Long())));
        SCENES.put("session-aggregate", b -> b.stream("session-aggregate-in", IN).groupByKey(GROUPED)
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(SECOND, SECOND))
            .aggregate(() -> "", (k, v, sum) -> sum + v, (k, one, two) -> one + two, Materialized
                .<String, String, SessionStore<Bytes, byte[]>>as("session-aggregate-store")
                .withKeySerde(TEXT).withValueSerde(TEXT))
            .toStream().to("session-aggregate-out", sessions(TEXT)));
        SCENES.put("suppress-window", b -> b.stream("suppress-window-in", IN).groupByKey(GROUPED)
            .windowedBy(TimeWindows.ofSizeAndGrace(SECOND, SECOND)).count(windowCounts("suppress-window-store"))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream().to("suppress-window-out", windowed(Serdes.Long(), 1000)));
        SCENES.put("suppress-time", b -> b.stream("suppress-time-in", IN).groupByKey(GROUPED)
            .count(counted("suppress-time-store"))
            .suppress(Suppressed.untilTimeLimit(Duration.ofSeconds(3), Suppressed.BufferConfig.unbounded()))
            .toStream().to("suppress-time-out", COUNTS));
    }

    static void streamJoins() {
        var windows = JoinWindows.ofTimeDifferenceAndGrace(SECOND, SECOND);
        var uneven = JoinWindows.ofTimeDifferenceAndGrace(SECOND, SECOND).before(Duration.ofMillis(300));
        var joined = StreamJoined.with(TEXT, TEXT, TEXT);
        SCENES.put("stream-join", b -> b.stream("stream-join-left", IN)
            .join(b.stream("stream-join-right", IN), (one, two) -> one + "+" + two, windows, joined)
            .to("stream-join-out", OUT));
        SCENES.put("stream-join-uneven", b -> b.stream("stream-join-uneven-left", IN)
            .join(b.stream("stream-join-uneven-right", IN), (one, two) -> one + "+" + two, uneven, joined)
            .to("stream-join-uneven-out", OUT));
        SCENES.put("stream-left-join", b -> b.stream("stream-left-join-left", IN)
            .leftJoin(b.stream("stream-left-join-right", IN), (one, two) -> one + "+" + two, windows, joined)
            .to("stream-left-join-out", OUT));
        SCENES.put("stream-outer-join", b -> b.stream("stream-outer-join-left", IN)
            .outerJoin(b.stream("stream-outer-join-right", IN), (one, two) -> one + "+" + two, windows, joined)
            .to("stream-outer-join-out", OUT));
        SCENES.put("stream-join-named", b -> b.stream("stream-join-named-left", IN).selectKey((k, v) -> k + k)
            .join(b.stream("stream-join-named-right", IN).map((k, v) -> KeyValue.pair(k + k, v)),
                (one, two) -> one + "+" + two, windows, joined.withName("meeting").withStoreName("meeting-store"))
            .to("stream-join-named-out", OUT));
    }

    static void tableJoins() {
        var joined = Joined.with(TEXT, TEXT, TEXT);
        SCENES.put("table-lookup", b -> b.stream("table-lookup-in", IN)
            .join(b.table("table-lookup-table", IN), (one, two) -> one + "+" + two, joined).to("table-lookup-out", OUT));
        SCENES.put("table-lookup-left", b -> b.stream("table-lookup-left-in", IN)
            .leftJoin(b.table("table-lookup-left-table", IN, kept("lookup-store")), (one, two) -> one + "+" + two, joined)
            .to("table-lookup-left-out", OUT));
        SCENES.put("table-lookup-rekeyed", b -> b.stream("table-lookup-rekeyed-in", IN)
            .selectKey((k, v) -> k.toUpperCase())
            .join(b.table("table-lookup-rekeyed-table", IN), (one, two) -> one + "+" + two, joined)
            .to("table-lookup-rekeyed-out", OUT));
        SCENES.put("global-join", b -> {
            GlobalKTable<String, String> names = b.globalTable("global-join-table", IN);
            b.stream("global-join-in", IN).join(names, (k, v) -> v, (one, two) -> one + "+" + two)
                .to("global-join-out", OUT);
        });
        SCENES.put("global-left-join", b -> {
            GlobalKTable<String, String> names = b.globalTable("global-left-join-table", IN, kept("names"));
            b.stream("global-left-join-in", IN).leftJoin(names, (k, v) -> v, (one, two) -> one + "+" + two)
                .to("global-left-join-out", OUT);
        });
        SCENES.put("table-join", b -> b.table("table-join-left", IN)
            .join(b.table("table-join-right", IN), (one, two) -> one + "+" + two).toStream().to("table-join-out", OUT));
        SCENES.put("table-left-join", b -> b.table("table-left-join-left", IN)
            .leftJoin(b.table("table-left-join-right", IN), (one, two) -> one + "+" + two)
            .toStream().to("table-left-join-out", OUT));
        SCENES.put("table-outer-join", b -> b.table("table-outer-join-left", IN)
            .outerJoin(b.table("table-outer-join-right", IN), (one, two) -> one + "+" + two, kept("table-outer-join-store"))
            .toStream().to("table-outer-join-out", OUT));
    }

    static void tables() {
        SCENES.put("table-map-values", b -> b.table("table-map-values-in", IN)
            .mapValues(v -> v + "!", kept("table-map-values-store")).toStream().to("table-map-values-out", OUT));
        SCENES.put("table-filter", b -> b.table("table-filter-in", IN)
            .filter((k, v) -> number(v) % 2 == 0).toStream().to("table-filter-out", OUT));
        SCENES.put("to-table", b -> b.stream("to-table-in", IN).mapValues(v -> v.equals("v13") ? null : v)
            .toTable(kept("to-table-store")).toStream().to("to-table-out", OUT));
        SCENES.put("table-count", b -> b.table("table-count-in", IN)
            .groupBy((k, v) -> KeyValue.pair("n" + number(v) % 3, v), GROUPED).count(counted("table-count-store"))
            .toStream().to("table-count-out", COUNTS));
        SCENES.put("table-reduce", b -> b.table("table-reduce-in", IN)
            .groupBy((k, v) -> KeyValue.pair("n" + number(v) % 3, v), GROUPED)
            .reduce((sum, v) -> "v" + (number(sum) + number(v)), (sum, v) -> "v" + (number(sum) - number(v)))
            .toStream().to("table-reduce-out", OUT));
        SCENES.put("table-aggregate", b -> b.table("table-aggregate-in", IN)
            .groupBy((k, v) -> KeyValue.pair("n" + number(v) % 3, v), GROUPED)
            .aggregate(() -> "v0", (k, v, sum) -> "v" + (number(sum) + number(v)),
                (k, v, sum) -> "v" + (number(sum) - number(v)), kept("table-aggregate-store"))
            .toStream().to("table-aggregate-out", OUT));
    }

    /** Sums the numbers of a key, tells the sums every second of stream time, and says goodbye to "v0". */
    static class Summing extends ContextualProcessor<String, String, String, String> {
        private KeyValueStore<String, String> sums;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            sums = context.getStateStore("sums");
            context.schedule(SECOND, PunctuationType.STREAM_TIME, time -> {
                try (var all = sums.all()) {
                    all.forEachRemaining(each -> context().forward(new Record<>(each.key, each.value, time)));
                }
            });
        }

        @Override
        public void process(Record<String, String> record) {
            String before = sums.get(record.key());
            int now = (before == null ? 0 : number(before)) + number(record.value());
            if (number(record.value()) == 0) {
                sums.delete(record.key());
                context().forward(record.withKey(record.key() + "-gone").withValue("v" + now));
            } else {
                sums.put(record.key(), "v" + now);
            }
        }
    }

    /** Says of every value which one it is of its key. */
    static class Numbering extends ContextualFixedKeyProcessor<String, String, String> {
        private KeyValueStore<String, String> seen;

        @Override
        public void init(FixedKeyProcessorContext<String, String> context) {
            super.init(context);
            seen = context.getStateStore("seen");
        }

        @Override
        public void process(FixedKeyRecord<String, String> record) {
            String before = seen.get(record.key());
            int now = before == null ? 1 : number(before) + 1;
            seen.put(record.key(), "v" + now);
            context().forward(record.withValue(record.value() + "#" + now));
        }
    }

    static void processors() {
        SCENES.put("process", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("sums"), TEXT, TEXT));
            b.stream("process-in", IN).process(Summing::new, "sums").to("process-out", OUT);
        });
        SCENES.put("process-values", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("seen"), TEXT, TEXT));
            b.stream("process-values-in", IN).processValues(Numbering::new, Named.as("numbering"), "seen")
                .to("process-values-out", OUT);
        });
    }

    /** Even numbers go to one child, those that three divides to another, and the rest to all. */
    static class Sorting extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {
            if (number(record.value()) % 2 == 0) {
                context().forward(record, "even");
            } else if (number(record.value()) % 3 == 0) {
                context().forward(record, "third");
            } else {
                context().forward(record);
            }
        }
    }

    static class Repeating extends ContextualFixedKeyProcessor<String, String, String> {
        @Override
        public void process(FixedKeyRecord<String, String> record) {
            context().forward(record.withValue(record.value() + record.value()));
        }
    }

    /** Says of every value which one it is of its key; every fifth is deleted. */
    static class Versions implements ValueTransformerWithKey<String, String, String> {
        private KeyValueStore<String, String> versions;

        @Override
        public void init(org.apache.kafka.streams.processor.ProcessorContext context) {
            versions = context.getStateStore("versions");
        }

        @Override
        public String transform(String key, String value) {
            String before = versions.get(key);
            int now = before == null ? 1 : number(before) + 1;
            versions.put(key, "v" + now);
            return now % 5 == 0 ? null : value + "#" + now;
        }

        @Override
        public void close() { }
    }

    static void transforms() {
        SCENES.put("table-transform", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("versions"), TEXT, TEXT));
            b.table("table-transform-in", IN)
                .transformValues(Versions::new, kept("table-transform-store"), "versions")
                .filter((k, v) -> !v.equals("v1#1")).toStream().to("table-transform-out", OUT);
        });
    }

    static void forwards() {
        SCENES.put("forward", b -> {
            var sorted = b.stream("forward-in", IN).process(Sorting::new, Named.as("sorting"));
            sorted.mapValues(v -> v + "e", Named.as("even")).to("forward-even-out", OUT);
            sorted.processValues(Repeating::new, Named.as("third")).to("forward-third-out", OUT);
            sorted.to("forward-all-out", Produced.with(TEXT, TEXT).withName("all"));
        });
    }

    static CogroupedKStream<String, String> cogrouped(StreamsBuilder b, String scene) {
        return b.stream(scene + "-left", IN).groupByKey(GROUPED).<String>cogroup((k, v, sum) -> sum + v)
            .cogroup(b.stream(scene + "-right", IN).groupByKey(GROUPED), (k, v, sum) -> sum + "*" + v);
    }

    static void cogroups() {
        SCENES.put("cogroup", b -> cogrouped(b, "cogroup").aggregate(() -> "", kept("cogroup-store"))
            .toStream().to("cogroup-out", OUT));
        SCENES.put("cogroup-rekeyed", b -> b.stream("cogroup-rekeyed-left", IN)
            .groupBy((k, v) -> "n" + number(v) % 3, GROUPED).<String>cogroup((k, v, sum) -> sum + v)
            .cogroup(b.stream("cogroup-rekeyed-right", IN).groupByKey(GROUPED), (k, v, sum) -> sum + "*" + v)
            .aggregate(() -> "", Named.as("both"), Materialized.with(TEXT, TEXT))
            .toStream().to("cogroup-rekeyed-out", OUT));
        SCENES.put("cogroup-tumbling", b -> cogrouped(b, "cogroup-tumbling")
            .windowedBy(TimeWindows.ofSizeAndGrace(SECOND, SECOND))
            .aggregate(() -> "", windowTexts("cogroup-tumbling-store"))
            .toStream().to("cogroup-tumbling-out", windowed(TEXT, 1000)));
        SCENES.put("cogroup-sliding", b -> cogrouped(b, "cogroup-sliding")
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(SECOND, Duration.ofSeconds(30)))
            .aggregate(() -> "", windowTexts("cogroup-sliding-store"))
            .toStream().to("cogroup-sliding-out", windowed(TEXT, 1000)));
        SCENES.put("cogroup-session", b -> cogrouped(b, "cogroup-session")
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(SECOND, SECOND))
            .aggregate(() -> "", (k, one, two) -> one + two, Materialized
                .<String, String, SessionStore<Bytes, byte[]>>as("cogroup-session-store")
                .withKeySerde(TEXT).withValueSerde(TEXT))
            .toStream().to("cogroup-session-out", sessions(TEXT)));
    }

    static String otherKey(String value) {
        int place = number(value) % 5;
        return place == 4 ? null : "abcd".substring(place, place + 1);
    }

    static void foreignJoins() {
        SCENES.put("foreign-join", b -> b.table("foreign-join-left", IN)
            .join(b.table("foreign-join-right", IN), v -> otherKey(v), (one, two) -> one + "+" + two,
                kept("foreign-join-store")).toStream().to("foreign-join-out", OUT));
        SCENES.put("foreign-left-join", b -> b.table("foreign-left-join-left", IN)
            .leftJoin(b.table("foreign-left-join-right", IN), v -> otherKey(v), (one, two) -> one + "+" + two,
                TableJoined.as("looked-up")).toStream().to("foreign-left-join-out", OUT));
        SCENES.put("foreign-join-counted", b -> b.table("foreign-join-counted-left", IN)
            .mapValues(v -> v + "0", Materialized.with(TEXT, TEXT))
            .join(b.table("foreign-join-counted-right", IN), (k, v) -> otherKey(v), (one, two) -> one + "+" + two,
                Materialized.with(TEXT, TEXT))
            .groupBy((k, v) -> KeyValue.pair(v.substring(v.length() - 1), v), GROUPED)
            .count(counted("foreign-join-counted-store")).toStream().to("foreign-join-counted-out", COUNTS));
    }

    static void moreJoins() {
        SCENES.put("self-join", b -> {
            var stream = b.stream("self-join-in", IN);
            stream.join(stream, (one, two) -> one + "+" + two, JoinWindows.ofTimeDifferenceAndGrace(SECOND, SECOND),
                StreamJoined.with(TEXT, TEXT, TEXT)).to("self-join-out", OUT);
        });
    }

    static void nulls() {
        SCENES.put("nulls-table", b -> {
            var table = b.table("nulls-table-in", IN);
            table.toStream().to("nulls-table-out", OUT);
            table.filterNot((k, v) -> number(v) % 2 == 0).mapValues(v -> number(v) % 3 == 0 ? null : v + "!")
                .toStream().to("nulls-table-odd-out", OUT);
            table.groupBy((k, v) -> KeyValue.pair(otherKey(v), v), GROUPED).count()
                .toStream().to("nulls-table-count-out", COUNTS);
        });
        SCENES.put("nulls-count", b -> {
            var grouped = b.stream("nulls-count-in", IN).groupByKey(GROUPED);
            grouped.count().toStream().to("nulls-count-out", COUNTS);
            grouped.windowedBy(TimeWindows.ofSizeAndGrace(SECOND, SECOND)).reduce((one, two) -> one + "+" + two)
                .toStream().to("nulls-count-reduced-out", windowed(TEXT, 1000));
            grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(SECOND, SECOND)).count()
                .toStream().to("nulls-count-sliding-out", windowed(Serdes.Long(), 1000));
            grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(SECOND, SECOND)).count()
                .toStream().to("nulls-count-session-out", sessions(Serdes.Long()));
        });
        SCENES.put("nulls-lookup", b -> {
            var stream = b.stream("nulls-lookup-in", IN);
            var table = b.table("nulls-lookup-table", IN);
            var joined = Joined.with(TEXT, TEXT, TEXT);
            stream.leftJoin(table, (one, two) -> one + "+" + two, joined).to("nulls-lookup-left-out", OUT);
            stream.join(table, (one, two) -> one + "+" + two, joined).to("nulls-lookup-out", OUT);
        });
        SCENES.put("nulls-global", b -> {
            GlobalKTable<String, String> table = b.globalTable("nulls-global-table", IN);
            var stream = b.stream("nulls-global-in", IN);
            stream.leftJoin(table, (k, v) -> v == null || number(v) % 3 == 0 ? null : v, (one, two) -> one + "+" + two)
                .to("nulls-global-left-out", OUT);
            stream.join(table, (k, v) -> v == null || number(v) % 3 == 0 ? null : v, (one, two) -> one + "+" + two)
                .to("nulls-global-out", OUT);
        });
        SCENES.put("nulls-streams", b -> {
            var left = b.stream("nulls-streams-left", IN);
            var right = b.stream("nulls-streams-right", IN);
            var windows = JoinWindows.ofTimeDifferenceAndGrace(SECOND, SECOND);
            var joined = StreamJoined.with(TEXT, TEXT, TEXT);
            left.join(right, (one, two) -> one + "+" + two, windows, joined).to("nulls-streams-inner-out", OUT);
            left.leftJoin(right, (one, two) -> one + "+" + two, windows, joined).to("nulls-streams-left-out", OUT);
            left.outerJoin(right, (one, two) -> one + "+" + two, windows, joined).to("nulls-streams-outer-out", OUT);
        });
        SCENES.put("nulls-rekeyed", b -> {
            var chosen = b.stream("nulls-rekeyed-in", IN).selectKey((k, v) -> v == null ? k : otherKey(v));
            chosen.repartition(org.apache.kafka.streams.kstream.Repartitioned.with(TEXT, TEXT)).to("nulls-rekeyed-all-out", OUT);
            chosen.groupByKey(GROUPED).count().toStream().to("nulls-rekeyed-out", COUNTS);
            chosen.toTable(kept("nulls-rekeyed-store")).toStream().to("nulls-rekeyed-table-out", OUT);
        });
        SCENES.put("disordered-table", b -> {
            var table = b.table("disordered-table-in", IN);
            table.toStream().to("disordered-table-out", OUT);
            table.groupBy((k, v) -> KeyValue.pair("n" + number(v) % 3, v), GROUPED)
                .aggregate(() -> "v0", (k, v, sum) -> "v" + (number(sum) + number(v)),
                    (k, v, sum) -> "v" + (number(sum) - number(v)), kept("disordered-table-store"))
                .toStream().to("disordered-table-sum-out", OUT);
        });
    }

    static void finals() {
        SCENES.put("suppress-session", b -> b.stream("suppress-session-in", IN).groupByKey(GROUPED)
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(SECOND, SECOND)).count(sessionCounts("suppress-session-store"))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream().to("suppress-session-out", sessions(Serdes.Long())));
        SCENES.put("emit-final", b -> {
            var grouped = b.stream("emit-final-in", IN).groupByKey(GROUPED);
            grouped.windowedBy(TimeWindows.ofSizeAndGrace(SECOND, SECOND).advanceBy(Duration.ofMillis(400)))
                .emitStrategy(EmitStrategy.onWindowClose()).reduce((one, two) -> one + "+" + two, windowTexts("emit-final-store").withRetention(Duration.ofHours(1)))
                .toStream().to("emit-final-out", windowed(TEXT, 1000));
            grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(SECOND, SECOND))
                .emitStrategy(EmitStrategy.onWindowClose()).count(windowCounts("emit-final-sliding-store").withRetention(Duration.ofHours(1)))
                .toStream().to("emit-final-sliding-out", windowed(Serdes.Long(), 1000));
            grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(SECOND, SECOND))
                .emitStrategy(EmitStrategy.onWindowClose()).reduce((one, two) -> one + "+" + two, Materialized
                    .<String, String, SessionStore<Bytes, byte[]>>as("emit-final-session-store")
                    .withKeySerde(TEXT).withValueSerde(TEXT).withRetention(Duration.ofHours(1)))
                .toStream().to("emit-final-session-out", sessions(TEXT));
        });
    }

    static void run(String program, List<Line> input) {
        var builder = new StreamsBuilder();
        var names = List.of(program.split(","));
        for (String name : names) {
            SCENES.get(name).accept(builder);
        }
        var settings = new Properties();
        // Without these, results that are due wait for the clock on the wall, which stands still here.
        settings.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        settings.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        settings.putAll(Map.of("application.id", "oracle", "bootstrap.servers", "nowhere:1",
            "statestore.cache.max.bytes", "0", "state.dir", System.getProperty("java.io.tmpdir") + "/oracle-"
                + ProcessHandle.current().pid(), "default.key.serde", Serdes.StringSerde.class.getName(),
            "default.value.serde", Serdes.StringSerde.class.getName()));
        var topology = builder.build();
        topology.describe().toString().lines().forEach(line -> System.out.println("describe\t" + program + "\t" + line));
        if (input.isEmpty()) {
            return;
        }
        try (var driver = new TopologyTestDriver(topology, settings)) {
            pipe(driver, names, input);
            for (String topic : new TreeSet<>(driver.producedTopicNames())) {
                if (topic.endsWith("-out")) {
                    print(driver, program, topic);
                }
            }
        }
    }

    static void pipe(TopologyTestDriver driver, List<String> names, List<Line> input) {
        for (Line line : input) {
            String scene = line.topic().substring(0, line.topic().lastIndexOf('-'));
            if (names.contains(scene)) {
                driver.createInputTopic(line.topic(), new StringSerializer(), new StringSerializer())
                    .pipeInput(line.key(), line.value(), line.timestamp());
            }
        }
    }

    static void print(TopologyTestDriver driver, String program, String topic) {
        var out = driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        for (var record : out.readRecordsToList()) {
            System.out.println(String.join("\t", "record", program, topic, hex(record.key()), hex(record.value()),
                String.valueOf(record.timestamp())));
        }
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "~" : HexFormat.of().formatHex(bytes);
    }

    static String text(String field) {
        return field.equals("~") ? null : field;
    }

    public static void main(String[] programs) throws Exception {
        stateless();
        aggregations();
        streamJoins();
        tableJoins();
        tables();
        processors();
        forwards();
        transforms();
        cogroups();
        foreignJoins();
        moreJoins();
        nulls();
        finals();
        var input = new ArrayList<Line>();
        try (var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] fields = line.split("\t");
                input.add(new Line(fields[0], text(fields[1]), text(fields[2]), Long.parseLong(fields[3])));
            }
        }
        for (String program : programs.length == 0 ? SCENES.keySet().toArray(String[]::new) : programs) {
            run(program, input);
        }
    }
}
