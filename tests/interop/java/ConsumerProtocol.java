import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Reads the address of a broker and the name of a topic, and prints what consumers of the new group protocol do there. */
public class ConsumerProtocol {
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        bootstrap = input.readLine();
        String topic = input.readLine();
        try (var admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, 4, (short) 1))).all().get();
            produce(topic, 0, 8);
            try (var first = member(topic, "consumer"); var second = member(topic, "consumer")) {
                first.subscribe(List.of(topic));
                say("one has", settle(4, first));
                second.subscribe(List.of(topic));
                say("two share", settle(4, first, second));
                first.commitSync();
                second.commitSync();
                var described = admin.describeConsumerGroups(List.of(topic)).all().get().get(topic);
                say("described", described.type() + " " + described.members().size());
                second.close();
                say("one takes over", settle(4, first));
                produce(topic, 8, 12);
                say("goes on with", read(first, 8, 12));
            }
            try (var old = member(topic + "-moved", "classic"); var now = member(topic + "-moved", "consumer")) {
                old.subscribe(List.of(topic));
                say("a classic one has", settle(4, old));
                now.subscribe(List.of(topic));
                say("both kinds share", settle(4, old, now));
                old.close();
                say("the new kind takes over", settle(4, now));
            }
            try (var pattern = member(topic + "-pattern", "consumer")) {
                pattern.subscribe(new SubscriptionPattern(topic.substring(0, topic.length() - 1) + "."));
                say("a pattern has", settle(4, pattern));
            }
        }
    }

    static void say(String what, Object answer) {
        System.out.println(what + "\t" + answer);
    }

    static KafkaConsumer<String, String> member(String group, String protocol) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", bootstrap, "group.id", group, "group.protocol", protocol,
            "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        if (protocol.equals("classic")) {
            settings.put("heartbeat.interval.ms", "200");
            settings.put("session.timeout.ms", "6000");
        }
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static void produce(String topic, int from, int to) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int i = from; i < to; i++) {
                producer.send(new ProducerRecord<>(topic, i % 4, null, "" + i));
            }
        }
    }

    /** Polls until all partitions are assigned, each once and evenly; how many each has. */
    @SafeVarargs
    static String settle(int partitions, KafkaConsumer<String, String>... members) {
        long deadline = System.currentTimeMillis() + 40_000;
        while (System.currentTimeMillis() < deadline) {
            var found = new TreeSet<Integer>();
            int least = partitions;
            int total = 0;
            for (var member : members) {
                member.poll(Duration.ofMillis(50));
                member.assignment().forEach(each -> found.add(each.partition()));
                least = Math.min(least, member.assignment().size());
                total += member.assignment().size();
            }
            if (found.size() == partitions && total == partitions && least == partitions / members.length) {
                return "all " + partitions + ", at least " + least + " each";
            }
        }
        return "nothing in time";
    }

    /** Polls until the last records are there; those that were committed by nobody may come once more. */
    static String read(KafkaConsumer<String, String> member, int from, int to) {
        var values = new TreeSet<Integer>();
        long deadline = System.currentTimeMillis() + 30_000;
        while (values.tailSet(from).size() < to - from && System.currentTimeMillis() < deadline) {
            member.poll(Duration.ofMillis(100)).forEach(record -> values.add(Integer.parseInt(record.value())));
        }
        return values.tailSet(from).toString();
    }
}
