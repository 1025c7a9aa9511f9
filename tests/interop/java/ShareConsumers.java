import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/**
 * Kafka's own share consumer and the admin calls about share groups, against a broker known by its bootstrap address.
 * Prints one line per check, "PASS name" or "FAIL name reason".
 */
public class ShareConsumers {
    private static final long SECONDS = 30;
    private static String bootstrap;
    private static Admin admin;
    private static final Map<String, Check> checks = new LinkedHashMap<>();

    private interface Check {
        void run(String name) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        checks.put("implicit", ShareConsumers::implicit);
        checks.put("explicit", ShareConsumers::explicit);
        checks.put("renewal", ShareConsumers::renewal);
        checks.put("record-limit", ShareConsumers::recordLimit);
        checks.put("many-consumers", ShareConsumers::manyConsumers);
        checks.put("lost-consumer", ShareConsumers::lostConsumer);
        checks.put("admin", ShareConsumers::administration);
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        for (var check : checks.entrySet()) {
            String name = check.getKey() + "-" + UUID.randomUUID().toString().substring(0, 8);
            try {
                check.getValue().run(name);
                System.out.println("PASS " + check.getKey());
            } catch (Throwable problem) {
                StackTraceElement where = Arrays.stream(problem.getStackTrace())
                    .filter(line -> line.getClassName().startsWith("ShareConsumers")).findFirst().orElse(null);
                System.out.println("FAIL " + check.getKey() + " " + problem.toString().replace('\n', ' ') + " at " + where);
            }
        }
        admin.close(Duration.ofSeconds(5));
        System.exit(0);
    }

    // What the checks share.

    private static void create(String name, int partitions, Map<String, String> settings) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get(SECONDS, TimeUnit.SECONDS);
        var all = new HashMap<>(Map.of("share.auto.offset.reset", "earliest"));
        all.putAll(settings);
        List<AlterConfigOp> changes = new ArrayList<>();
        all.forEach((key, value) -> changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, name), changes))
            .all().get(SECONDS, TimeUnit.SECONDS);
    }

    private static void fill(String topic, int from, int to, int partitions) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "batch.size", 200);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = from; number < to; number++) {
                producer.send(new ProducerRecord<>(topic, number % partitions, null, "" + number));
            }
        }
    }

    private static KafkaShareConsumer<String, String> consumer(String name, Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", name));
        all.putAll(settings);
        var consumer = new KafkaShareConsumer<>(all, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(name));
        return consumer;
    }

    private static ConsumerRecords<String, String> poll(KafkaShareConsumer<String, String> consumer) {
        long end = System.currentTimeMillis() + SECONDS * 1000;
        while (System.currentTimeMillis() < end) {
            var records = consumer.poll(Duration.ofMillis(200));
            if (!records.isEmpty()) {
                return records;
            }
        }
        throw new AssertionError("no records within " + SECONDS + " s");
    }

    private static List<Integer> numbers(ConsumerRecords<String, String> records) {
        List<Integer> found = new ArrayList<>();
        records.forEach(record -> found.add(Integer.parseInt(record.value())));
        return found;
    }

    private static void same(Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    private static Set<Integer> upTo(int end) {
        Set<Integer> all = new TreeSet<>();
        for (int number = 0; number < end; number++) {
            all.add(number);
        }
        return all;
    }

    private static long lag(String name) throws Exception {
        var spec = Map.of(name, new ListShareGroupOffsetsSpec());
        long lag = 0;
        for (var info : admin.listShareGroupOffsets(spec).partitionsToOffsetInfo(name).get(SECONDS, TimeUnit.SECONDS).values()) {
            lag += info.lag().orElse(1000L);
        }
        return lag;
    }

    // Consuming.

    /** Everything is read once, over several partitions. */
    private static void implicit(String name) throws Exception {
        create(name, 3, Map.of());
        fill(name, 0, 300, 3);
        List<Integer> got = new ArrayList<>();
        try (var consumer = consumer(name, Map.of())) {
            while (got.size() < 300) {
                got.addAll(numbers(poll(consumer)));
            }
            consumer.commitSync();
        }
        same(300, got.size());
        same(upTo(300), new TreeSet<>(got));
        same(0L, lag(name));
    }

    /** Accept, release and reject; what was released has a higher delivery count. */
    private static void explicit(String name) throws Exception {
        create(name, 1, Map.of());
        fill(name, 0, 3, 1);
        try (var consumer = consumer(name, Map.of("share.acknowledgement.mode", "explicit"))) {
            Map<Integer, Short> counts = new TreeMap<>();
            List<Integer> again = new ArrayList<>();
            while (counts.size() < 3 || again.isEmpty()) {
                for (var record : poll(consumer)) {
                    int number = Integer.parseInt(record.value());
                    if (counts.put(number, record.deliveryCount().get()) != null) {
                        again.add(number);
                    }
                    var kind = number == 1 && !again.contains(1) ? AcknowledgeType.RELEASE
                        : number == 2 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
                    consumer.acknowledge(record, kind);
                }
                consumer.commitSync().values().forEach(error -> same(Optional.empty(), error));
            }
            same(List.of(1), again);
            same((short) 2, counts.get(1));
        }
        same(0L, lag(name));
    }

    /** A lock that is renewed outlives its time. */
    private static void renewal(String name) throws Exception {
        create(name, 1, Map.of("share.record.lock.duration.ms", "15000"));
        fill(name, 0, 1, 1);
        try (var consumer = consumer(name, Map.of("share.acknowledgement.mode", "explicit"))) {
            var record = poll(consumer).iterator().next();
            consumer.acknowledge(record, AcknowledgeType.RENEW);
            consumer.commitSync().values().forEach(error -> same(Optional.empty(), error));
            var renewed = poll(consumer).iterator().next();
            same(record.offset(), renewed.offset());
            consumer.acknowledge(renewed, AcknowledgeType.ACCEPT);
            consumer.commitSync().values().forEach(error -> same(Optional.empty(), error));
        }
        same(0L, lag(name));
    }

    /** No more records than asked for, whatever the batches. */
    private static void recordLimit(String name) throws Exception {
        create(name, 1, Map.of());
        fill(name, 0, 50, 1);
        List<Integer> got = new ArrayList<>();
        try (var consumer = consumer(name, Map.of("share.acquire.mode", "record_limit", "max.poll.records", 7))) {
            while (got.size() < 50) {
                var records = poll(consumer);
                same(true, records.count() <= 7);
                got.addAll(numbers(records));
            }
        }
        same(upTo(50), new TreeSet<>(got));
        same(50, got.size());
    }

    /** Three consumers of one partition get everything together, each record once. */
    private static void manyConsumers(String name) throws Exception {
        create(name, 1, Map.of());
        List<Integer> got = Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            Thread thread = new Thread(() -> {
                try (var consumer = consumer(name, Map.of("max.poll.records", 10))) {
                    long end = System.currentTimeMillis() + SECONDS * 1000;
                    while (got.size() < 600 && System.currentTimeMillis() < end) {
                        got.addAll(numbers(consumer.poll(Duration.ofMillis(100))));
                        consumer.commitSync();
                    }
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (int batch = 0; batch < 60; batch++) {
            fill(name, batch * 10, batch * 10 + 10, 1);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        same(upTo(600), new TreeSet<>(got));
        same(600, got.size());
        same(0L, lag(name));
    }

    /** What a consumer held that closed without acknowledging goes to another. */
    private static void lostConsumer(String name) throws Exception {
        create(name, 1, Map.of());
        fill(name, 0, 5, 1);
        var lost = consumer(name, Map.of("share.acknowledgement.mode", "explicit"));
        Set<Integer> held = new TreeSet<>();
        held.addAll(numbers(poll(lost)));
        lost.close(Duration.ofSeconds(5));
        Set<Integer> got = new TreeSet<>();
        try (var consumer = consumer(name, Map.of())) {
            while (got.size() < 5) {
                got.addAll(numbers(poll(consumer)));
            }
        }
        same(upTo(5), got);
        same(true, got.containsAll(held));
    }

    // Administration.

    private static void administration(String name) throws Exception {
        create(name, 2, Map.of());
        fill(name, 0, 10, 2);
        try (var consumer = consumer(name, Map.of())) {
            numbers(poll(consumer));
            var described = admin.describeShareGroups(List.of(name)).all().get(SECONDS, TimeUnit.SECONDS).get(name);
            same(GroupState.STABLE, described.groupState());
            same(1, described.members().size());
            same(2, described.members().iterator().next().assignment().topicPartitions().size());
        }
        boolean listed = admin.listGroups(ListGroupsOptions.forShareGroups()).all().get(SECONDS, TimeUnit.SECONDS)
            .stream().anyMatch(group -> group.groupId().equals(name) && group.type().get() == GroupType.SHARE);
        same(true, listed);
        var first = new TopicPartition(name, 0);
        admin.alterShareGroupOffsets(name, Map.of(first, 3L)).all().get(SECONDS, TimeUnit.SECONDS);
        var offsets = admin.listShareGroupOffsets(Map.of(name, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(name).get(SECONDS, TimeUnit.SECONDS);
        same(3L, offsets.get(first).startOffset());
        same(2L, offsets.get(first).lag().get());
        admin.deleteShareGroupOffsets(name, Set.of(name)).all().get(SECONDS, TimeUnit.SECONDS);
        same(Map.of(), admin.listShareGroupOffsets(Map.of(name, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(name).get(SECONDS, TimeUnit.SECONDS));
        admin.deleteShareGroups(List.of(name)).all().get(SECONDS, TimeUnit.SECONDS);
        listed = admin.listGroups(ListGroupsOptions.forShareGroups()).all().get(SECONDS, TimeUnit.SECONDS)
            .stream().anyMatch(group -> group.groupId().equals(name));
        same(false, listed);
    }
}
