import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Measures the same as kafka-consumer-perf-test, but with an assigned partition instead of a consumer group.
 *
 * <p>Arguments: BOOTSTRAP TOPIC COUNT. Prints one line of JSON. The time starts with the first records.
 */
public class Consume {
    public static void main(String[] arguments) {
        long count = Long.parseLong(arguments[2]);
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0], "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            TopicPartition partition = new TopicPartition(arguments[1], 0);
            consumer.assign(List.of(partition));
            consumer.seek(partition, 0);
            long taken = 0, first = 0, deadline = System.nanoTime() + 120_000_000_000L;
            while (taken < count && System.nanoTime() < deadline) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                if (first == 0 && !records.isEmpty()) first = System.nanoTime();
                taken += records.count();
            }
            double seconds = (System.nanoTime() - first) / 1e9;
            System.out.printf("{\"records\": %d, \"records_per_s\": %.0f}%n", taken, taken / seconds);
            System.exit(taken < count ? 1 : 0);
        }
    }
}
