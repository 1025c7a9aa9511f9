import java.io.FileInputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.Scanner;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java's clients with security. Each line of standard input has a name, a properties file and a topic, separated by
 * tabs: create the topic, produce 20 records, and consume them in a group. Prints the name and "OK", or the class and
 * the message of the exception.
 */
public class SecuredClients {
    static final int COUNT = 20;
    static final Duration PATIENCE = Duration.ofSeconds(30);

    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] fields = lines.nextLine().split("\t");
            String result;
            try {
                run(settings(fields[1]), fields[2]);
                result = "OK";
            } catch (Throwable error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                result = cause.getClass().getSimpleName() + ": " + String.valueOf(cause.getMessage()).replaceAll("\\s+", " ");
            }
            System.out.println(fields[0] + "\t" + result);
        }
    }

    static Properties settings(String file) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream in = new FileInputStream(file)) {
            settings.load(in);
        }
        settings.put("default.api.timeout.ms", "30000");
        settings.put("max.block.ms", "30000");
        return settings;
    }

    static void run(Properties settings, String topic) throws Exception {
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        }
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < COUNT; n++) {
                producer.send(new ProducerRecord<>(topic, "value-" + n)).get();
            }
        }
        settings.put("group.id", topic);
        settings.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            int taken = 0;
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (taken < COUNT && System.nanoTime() < deadline) {
                taken += consumer.poll(Duration.ofMillis(200)).count();
            }
            consumer.commitSync();
            if (taken != COUNT) {
                throw new IllegalStateException(taken + " of " + COUNT + " records");
            }
        }
    }
}
