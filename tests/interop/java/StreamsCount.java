import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts words until it is killed: every word that comes in goes out with how often it came so far.
 *
 * Words are brought together in a repartition topic, and the counts are kept in a store with a changelog. Nothing
 * is cached, so that each word in gives one record out. Arguments after the sixth are more settings, name=value;
 * count.again adds a store to the topology.
 */
public class StreamsCount {
    public static void main(String[] arguments) throws Exception {
        var settings = new Properties();
        settings.putAll(Map.of(
            "bootstrap.servers", arguments[0],
            "application.id", arguments[1],
            "processing.guarantee", arguments[4],
            "state.dir", arguments[5],
            "commit.interval.ms", "100",
            "statestore.cache.max.bytes", "0",
            "main.consumer.session.timeout.ms", "3000",
            "main.consumer.heartbeat.interval.ms", "300",
            "reconnect.backoff.max.ms", "200"));
        settings.put("consumer.auto.offset.reset", "earliest");
        for (int i = 6; i < arguments.length; i++) {
            var setting = arguments[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        if ("streams".equals(settings.get("group.protocol"))) {
            // The coordinator chooses them.
            settings.remove("main.consumer.session.timeout.ms");
            settings.remove("main.consumer.heartbeat.interval.ms");
        }
        var countsAgain = settings.remove("count.again") != null;
        var builder = new StreamsBuilder();
        var counts = builder.stream(arguments[2], Consumed.with(Serdes.String(), Serdes.String()))
            .map((key, word) -> KeyValue.pair(word, word))
            .groupByKey(Grouped.<String, String>as("words").withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream();
        if (countsAgain) {
            counts.groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
                .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("again"))
                    .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()));
        }
        counts
            .mapValues(Object::toString)
            .to(arguments[3], Produced.with(Serdes.String(), Serdes.String()));
        var streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(failure -> {
            System.out.println("failed\t" + failure);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println("state\t" + now));
        streams.start();
        Thread.currentThread().join();
    }
}
