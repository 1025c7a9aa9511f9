import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends the numbers from 0 on, one every few milliseconds, until it is asked by SIGTERM to stop: says which one was
 * acknowledged where, and which one was not.
 *
 * Arguments: the topic, its number of partitions; then settings as name=value. Idempotent, as Java's producer is
 * unless told otherwise.
 */
public class SteadyProducer {
    static volatile boolean stopping;

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        for (String argument : List.of(arguments).subList(2, arguments.length)) {
            String[] parts = argument.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        int partitions = Integer.parseInt(arguments[1]);
        var main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try {
                main.join(60_000);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }));
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; !stopping; number++) {
                String value = "" + number;
                producer.send(new ProducerRecord<>(arguments[0], number % partitions, null, value), (where, error) ->
                    say(error == null ? "acknowledged" : "failed",
                        error == null ? where.partition() + " " + where.offset() + " " + value : value + " " + error));
                Thread.sleep(5);
            }
        }
        say("stopped", "");
    }

    static synchronized void say(String what, String details) {
        System.out.println(what + "\t" + details);
    }
}
