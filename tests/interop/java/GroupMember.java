import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One member of a group, until it is killed, or asked by SIGTERM to leave: says what it is given, what it must
 * give up, and what it has read and committed.
 *
 * Arguments: the topic, or `pattern:` and an expression; then settings as name=value.
 */
public class GroupMember {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of("auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        for (String argument : List.of(arguments).subList(1, arguments.length)) {
            String[] parts = argument.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        var main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                main.join(10_000);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }));
        if (arguments[0].startsWith("pattern:")) {
            consumer.subscribe(new SubscriptionPattern(arguments[0].substring("pattern:".length())), new Listener());
        } else {
            consumer.subscribe(List.of(arguments[0]), new Listener());
        }
        try (consumer) {
            while (true) {
                var records = consumer.poll(Duration.ofMillis(100));
                if (!records.isEmpty()) {
                    consumer.commitSync();
                }
                records.forEach(record -> say("read", record.value()));
            }
        } catch (WakeupException asked) {
            say("leaving", "");
        }
    }

    static synchronized void say(String what, String details) {
        System.out.println(what + "\t" + details);
    }

    static class Listener implements ConsumerRebalanceListener {
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say("assigned", numbers(partitions));
        }

        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say("revoked", numbers(partitions));
        }

        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            say("lost", numbers(partitions));
        }

        static String numbers(Collection<TopicPartition> partitions) {
            return partitions.stream().map(each -> "" + each.partition()).sorted().collect(Collectors.joining(" "));
        }
    }
}
