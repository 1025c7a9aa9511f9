import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.BiConsumer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * The programs of `benchmarks.streams` in Kafka Streams: exactly once, stores in RocksDB, two threads, and the
 * default values of all other configs.
 *
 * Arguments: bootstrap servers, application id, state directory, program, prefix of the topics; then name=value for
 * further configs.
 */
public class StreamsPrograms {
    static final Serde<String> TEXT = Serdes.String();
    static final Serde<Long> NUMBER = Serdes.Long();
    static final Consumed<String, String> IN = Consumed.with(TEXT, TEXT);
    static final Produced<String, String> OUT = Produced.with(TEXT, TEXT);
    static final Produced<String, Long> COUNTS = Produced.with(TEXT, NUMBER);
    static final Grouped<String, String> GROUPED = Grouped.with(TEXT, TEXT);
    static final Duration WINDOW = Duration.ofMinutes(1);
    static final Duration NEAR = Duration.ofSeconds(10);
    static final Duration GRACE = Duration.ofMinutes(1);

    static final Map<String, BiConsumer<StreamsBuilder, String>> PROGRAMS = Map.of(
        "stateless", StreamsPrograms::stateless,
        "words", StreamsPrograms::words,
        "windows", StreamsPrograms::windows,
        "streams", StreamsPrograms::streams,
        "lookup", StreamsPrograms::lookup,
        "totals", StreamsPrograms::totals);

    static void stateless(StreamsBuilder builder, String prefix) {
        builder.stream(prefix + "-in", IN)
            .filter((key, value) -> Long.parseLong(value.split(",")[1]) >= 50)
            .map((key, value) -> {
                String[] fields = value.split(",");
                return KeyValue.pair(fields[0], String.valueOf(Long.parseLong(fields[1]) * 2));
            })
            .to(prefix + "-out", OUT);
    }

    static void words(StreamsBuilder builder, String prefix) {
        builder.stream(prefix + "-in", IN)
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, GROUPED)
            .count(Materialized.with(TEXT, NUMBER))
            .toStream().to(prefix + "-out", COUNTS);
    }

    static void windows(StreamsBuilder builder, String prefix) {
        builder.stream(prefix + "-in", IN)
            .groupByKey(GROUPED)
            .windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
            .count(Materialized.with(TEXT, NUMBER))
            .toStream().to(prefix + "-out",
                Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), NUMBER));
    }

    static void streams(StreamsBuilder builder, String prefix) {
        builder.stream(prefix + "-in", IN)
            .join(builder.stream(prefix + "-other", IN), (left, right) -> left + "+" + right,
                JoinWindows.ofTimeDifferenceAndGrace(NEAR, GRACE), StreamJoined.with(TEXT, TEXT, TEXT))
            .to(prefix + "-out", OUT);
    }

    static void lookup(StreamsBuilder builder, String prefix) {
        builder.stream(prefix + "-in", IN)
            .join(builder.table(prefix + "-other", IN), (value, row) -> value + "+" + row, Joined.with(TEXT, TEXT, TEXT))
            .to(prefix + "-out", OUT);
    }

    static void totals(StreamsBuilder builder, String prefix) {
        builder.table(prefix + "-in", IN)
            .groupBy((key, value) -> {
                String[] fields = value.split(",");
                return KeyValue.pair(fields[0], Long.parseLong(fields[1]));
            }, Grouped.with(TEXT, NUMBER))
            .aggregate(() -> 0L, (key, amount, sum) -> sum + amount, (key, amount, sum) -> sum - amount,
                Materialized.with(TEXT, NUMBER))
            .toStream().to(prefix + "-out", COUNTS);
    }

    public static void main(String[] arguments) throws Exception {
        var settings = new Properties();
        settings.putAll(Map.of(
            "bootstrap.servers", arguments[0],
            "application.id", arguments[1],
            "state.dir", arguments[2],
            "processing.guarantee", "exactly_once_v2",
            "num.stream.threads", "2",
            "consumer.auto.offset.reset", "earliest"));
        for (int i = 5; i < arguments.length; i++) {
            var setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        var builder = new StreamsBuilder();
        PROGRAMS.get(arguments[3]).accept(builder, arguments[4]);
        var streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        Thread.currentThread().join();
    }
}
