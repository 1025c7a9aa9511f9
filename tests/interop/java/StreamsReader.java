import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

/**
 * Reads a topic with Kafka Streams until it is killed, in the classic or the streams group protocol (KIP-1071); a
 * record with the value `block` is never completed.
 */
public class StreamsReader {
    public static void main(String[] arguments) throws Exception {
        var settings = new Properties();
        settings.putAll(Map.of(
            "bootstrap.servers", arguments[0],
            "application.id", arguments[1],
            "group.protocol", arguments[3],
            "state.dir", arguments[4],
            "commit.interval.ms", "100"));
        settings.put("consumer.auto.offset.reset", "earliest");
        var builder = new StreamsBuilder();
        builder.stream(arguments[2], Consumed.with(Serdes.String(), Serdes.String())).foreach((key, value) -> {
            try {
                if (value.equals("block")) Thread.currentThread().join();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        });
        var streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println("state\t" + now));
        streams.start();
        Thread.currentThread().join();
    }
}
