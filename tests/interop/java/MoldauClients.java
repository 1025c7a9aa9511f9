import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.*;

/**
 * The Java client against a broker known only by its bootstrap address: producer, consumer by assignment, admin.
 * Prints one line per check, "PASS name" or "FAIL name reason"; it compiles against kafka-clients 3.9 and 4.x.
 * Arguments: the bootstrap address, then the names of the checks to run (none: all of them).
 */
public class MoldauClients {
    private static final long SECONDS = 30;
    private static String bootstrap;
    private static Admin admin;
    private static final Map<String, Check> checks = new LinkedHashMap<>();

    private interface Check {
        void run(String topic) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        declareProducing();
        declareConsuming();
        declareTransactions();
        declareTopics();
        declareConfigs();
        declareCluster();
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        admin = Admin.create(settings);
        List<String> wanted = Arrays.asList(arguments).subList(1, arguments.length);
        for (Map.Entry<String, Check> check : checks.entrySet()) {
            if (!wanted.isEmpty() && !wanted.contains(check.getKey())) {
                continue;
            }
            String topic = check.getKey() + "-" + UUID.randomUUID().toString().substring(0, 8);
            try {
                check.getValue().run(topic);
                System.out.println("PASS " + check.getKey());
            } catch (Throwable problem) {
                String said = problem.toString().replace('\n', ' ');
                StackTraceElement where = Arrays.stream(problem.getStackTrace())
                    .filter(line -> line.getClassName().startsWith("MoldauClients")).findFirst().orElse(null);
                System.out.println("FAIL " + check.getKey() + " " + said + " at " + where);
            }
        }
        admin.close(Duration.ofSeconds(5));
        System.exit(0);
    }

    // Producing.

    private static void declareProducing() {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            checks.put("codec-" + codec, topic -> roundTrip(topic, Map.of("compression.type", codec, "linger.ms", "20")));
        }
        for (String acks : List.of("0", "1", "all")) {
            checks.put("acks-" + acks, topic -> acks(topic, acks));
        }
        checks.put("idempotence-in-order", MoldauClients::idempotenceInOrder);
        checks.put("nulls-and-empties", MoldauClients::nullsAndEmpties);
        checks.put("log-append-time", MoldauClients::logAppendTime);
        checks.put("big-records", MoldauClients::bigRecords);
        checks.put("record-too-large", MoldauClients::recordTooLarge);
        checks.put("keyless-on-compacted", MoldauClients::keylessOnCompacted);
        checks.put("auto-creation", MoldauClients::autoCreation);
        checks.put("invalid-topic-name", MoldauClients::invalidTopicName);
    }

    private static void roundTrip(String topic, Map<String, String> settings) throws Exception {
        create(topic, 1, Map.of());
        long now = System.currentTimeMillis();
        try (Producer<String, String> producer = producer(settings)) {
            for (int n = 0; n < 500; n++) {
                ProducerRecord<String, String> sent =
                    new ProducerRecord<>(topic, 0, now + n, "key-" + n, ("value " + n + " ").repeat(20));
                sent.headers().add("n", String.valueOf(n).getBytes(StandardCharsets.UTF_8)).add("null", null);
                producer.send(sent);
            }
            producer.flush();
        }
        int n = 0;
        for (ConsumerRecord<String, String> record : read(topic, 1, 500)) {
            same(n, record.offset());
            same(now + n, record.timestamp());
            same(TimestampType.CREATE_TIME, record.timestampType());
            same("key-" + n, record.key());
            same(("value " + n + " ").repeat(20), record.value());
            Header[] headers = record.headers().toArray();
            same(2, headers.length);
            same(String.valueOf(n), new String(headers[0].value(), StandardCharsets.UTF_8));
            same(null, headers[1].value());
            n++;
        }
    }

    private static void acks(String topic, String acks) throws Exception {
        create(topic, 1, Map.of());
        Map<String, String> settings = new HashMap<>(Map.of("acks", acks));
        if (!acks.equals("all")) {
            settings.put("enable.idempotence", "false");
        }
        try (Producer<String, String> producer = producer(settings)) {
            for (int n = 0; n < 100; n++) {
                RecordMetadata metadata = get(producer.send(new ProducerRecord<>(topic, String.valueOf(n))));
                same(acks.equals("0") ? -1L : (long) n, metadata.offset());
            }
        }
        same(IntStream.range(0, 100).mapToObj(String::valueOf).collect(Collectors.toList()), values(read(topic, 1, 100)));
    }

    private static void idempotenceInOrder(String topic) throws Exception {
        create(topic, 3, Map.of());
        try (Producer<String, String> producer = producer(Map.of("batch.size", "500", "linger.ms", "0"))) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int n = 0; n < 9000; n++) {
                sent.add(producer.send(new ProducerRecord<>(topic, n % 3, null, String.valueOf(n))));
                if (n < 3) {
                    // A new partition may refuse its first batch; retries with five in flight behind it can take minutes.
                    get(sent.get(n));
                }
            }
            for (Future<RecordMetadata> future : sent) {
                get(future);
            }
        }
        List<ConsumerRecord<String, String>> records = read(topic, 3, 9000);
        for (int p = 0; p < 3; p++) {
            int partition = p;
            List<Integer> found = records.stream().filter(r -> r.partition() == partition)
                .map(r -> Integer.valueOf(r.value())).collect(Collectors.toList());
            same(IntStream.range(0, 3000).map(n -> n * 3 + partition).boxed().collect(Collectors.toList()), found);
        }
    }

    private static void nullsAndEmpties(String topic) throws Exception {
        create(topic, 1, Map.of());
        String[][] pairs = {{null, null}, {"", ""}, {null, ""}, {"", null}, {"gone", null}, {"k", "v"}};
        try (Producer<String, String> producer = producer(Map.of())) {
            for (String[] pair : pairs) {
                get(producer.send(new ProducerRecord<>(topic, 0, pair[0], pair[1])));
            }
        }
        List<ConsumerRecord<String, String>> records = read(topic, 1, pairs.length);
        for (int n = 0; n < pairs.length; n++) {
            same(pairs[n][0], records.get(n).key());
            same(pairs[n][1], records.get(n).value());
        }
    }

    private static void logAppendTime(String topic) throws Exception {
        create(topic, 1, Map.of("message.timestamp.type", "LogAppendTime"));
        long before = System.currentTimeMillis();
        long reported;
        try (Producer<String, String> producer = producer(Map.of())) {
            reported = get(producer.send(new ProducerRecord<>(topic, 0, 1000L, "k", "v"))).timestamp();
        }
        ConsumerRecord<String, String> record = read(topic, 1, 1).get(0);
        same(TimestampType.LOG_APPEND_TIME, record.timestampType());
        same(reported, record.timestamp());
        check(reported >= before, "the broker's own clock");
    }

    private static void bigRecords(String topic) throws Exception {
        create(topic, 1, Map.of());
        try (Producer<String, String> producer = producer(Map.of())) {
            for (int n = 0; n < 3; n++) {
                get(producer.send(new ProducerRecord<>(topic, String.valueOf(n).repeat(900_000))));
            }
        }
        List<ConsumerRecord<String, String>> records = read(topic, 1, 3);
        for (int n = 0; n < 3; n++) {
            same(String.valueOf(n).repeat(900_000), records.get(n).value());
        }
    }

    private static void recordTooLarge(String topic) throws Exception {
        create(topic, 1, Map.of("max.message.bytes", "10000"));
        try (Producer<String, String> producer = producer(Map.of())) {
            fails(RecordTooLargeException.class, () -> get(producer.send(new ProducerRecord<>(topic, "x".repeat(20_000)))));
            same(0L, get(producer.send(new ProducerRecord<>(topic, "x".repeat(5_000)))).offset());
        }
    }

    private static void keylessOnCompacted(String topic) throws Exception {
        create(topic, 1, Map.of("cleanup.policy", "compact"));
        try (Producer<String, String> producer = producer(Map.of())) {
            get(producer.send(new ProducerRecord<>(topic, "k", "v")));
            fails(InvalidRecordException.class, () -> get(producer.send(new ProducerRecord<>(topic, "no key"))));
        }
    }

    private static void autoCreation(String topic) throws Exception {
        try (Producer<String, String> producer = producer(Map.of())) {
            same(0L, get(producer.send(new ProducerRecord<>(topic, "v"))).offset());
        }
        same(1, admin.describeTopics(List.of(topic)).allTopicNames().get(SECONDS, TimeUnit.SECONDS).get(topic).partitions().size());
    }

    private static void invalidTopicName(String topic) throws Exception {
        try (Producer<String, String> producer = producer(Map.of())) {
            fails(InvalidTopicException.class, () -> get(producer.send(new ProducerRecord<>("../" + topic, "v"))));
        }
    }

    // Consuming.

    private static void declareConsuming() {
        checks.put("positions-and-times", MoldauClients::positionsAndTimes);
        checks.put("inside-a-batch", MoldauClients::insideABatch);
        checks.put("offset-out-of-range", MoldauClients::offsetOutOfRange);
        checks.put("pause-and-resume", MoldauClients::pauseAndResume);
        checks.put("waiting-consumer", MoldauClients::waitingConsumer);
        checks.put("small-fetches", MoldauClients::smallFetches);
        checks.put("read-committed", MoldauClients::readCommitted);
        checks.put("a-thousand-partitions", MoldauClients::aThousandPartitions);
        checks.put("topics-seen-by-a-consumer", MoldauClients::topicsSeenByAConsumer);
    }

    private static void positionsAndTimes(String topic) throws Exception {
        create(topic, 1, Map.of());
        long now = System.currentTimeMillis();
        try (Producer<String, String> producer = producer(Map.of("linger.ms", "50"))) {
            for (int n = 0; n < 100; n++) {
                producer.send(new ProducerRecord<>(topic, 0, now + n * 10L, null, String.valueOf(n)));
            }
        }
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Consumer<String, String> consumer = consumer(Map.of())) {
            same(Map.of(partition, 0L), consumer.beginningOffsets(List.of(partition)));
            same(Map.of(partition, 100L), consumer.endOffsets(List.of(partition)));
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, now + 495)).get(partition);
            same(50L, found.offset());
            same(now + 500, found.timestamp());
            same(null, consumer.offsetsForTimes(Map.of(partition, now + 100_000)).get(partition));
            consumer.assign(List.of(partition));
            for (long offset : new long[] {37, 3, 99, 0}) {
                consumer.seek(partition, offset);
                same(offset, poll(consumer, 1).get(0).offset());
            }
            consumer.seekToEnd(List.of(partition));
            same(100L, consumer.position(partition));
        }
    }

    private static void insideABatch(String topic) throws Exception {
        create(topic, 1, Map.of());
        fill(topic, 1000, Map.of("linger.ms", "200", "batch.size", "1000000", "compression.type", "zstd"));
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Consumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(List.of(partition));
            for (int start : new int[] {1, 499, 999}) {
                consumer.seek(partition, start);
                List<String> expected = IntStream.range(start, 1000).mapToObj(String::valueOf).collect(Collectors.toList());
                same(expected, values(poll(consumer, 1000 - start)));
            }
        }
    }

    private static void offsetOutOfRange(String topic) throws Exception {
        create(topic, 1, Map.of());
        fill(topic, 1, Map.of());
        try (Consumer<String, String> consumer = consumer(Map.of("auto.offset.reset", "none"))) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seek(new TopicPartition(topic, 0), 1000);
            fails(org.apache.kafka.clients.consumer.OffsetOutOfRangeException.class, () -> poll(consumer, 1));
        }
    }

    private static void pauseAndResume(String topic) throws Exception {
        create(topic, 2, Map.of());
        try (Producer<String, String> producer = producer(Map.of())) {
            get(producer.send(new ProducerRecord<>(topic, 0, null, "zero")));
            get(producer.send(new ProducerRecord<>(topic, 1, null, "one")));
        }
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        try (Consumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(List.of(zero, one));
            consumer.seekToBeginning(List.of(zero, one));
            consumer.pause(List.of(zero));
            same("one", poll(consumer, 1).get(0).value());
            same(0, consumer.poll(Duration.ofMillis(300)).count());
            consumer.resume(List.of(zero));
            same("zero", poll(consumer, 1).get(0).value());
        }
    }

    private static void waitingConsumer(String topic) throws Exception {
        create(topic, 1, Map.of());
        fill(topic, 1, Map.of());
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Consumer<String, String> consumer = consumer(Map.of("fetch.max.wait.ms", "5000"));
             Producer<String, String> producer = producer(Map.of("linger.ms", "0"))) {
            consumer.assign(List.of(partition));
            consumer.seekToEnd(List.of(partition));
            same(0, consumer.poll(Duration.ofMillis(700)).count());
            long sent = System.nanoTime();
            get(producer.send(new ProducerRecord<>(topic, "new")));
            same("new", poll(consumer, 1).get(0).value());
            check(System.nanoTime() - sent < 2_000_000_000L, "the long poll ends with the append");
        }
    }

    private static void smallFetches(String topic) throws Exception {
        create(topic, 1, Map.of());
        try (Producer<String, String> producer = producer(Map.of())) {
            for (int n = 0; n < 20; n++) {
                get(producer.send(new ProducerRecord<>(topic, String.valueOf(n % 10).repeat(10_000))));
            }
        }
        try (Consumer<String, String> consumer = consumer(Map.of("max.partition.fetch.bytes", "100", "fetch.max.bytes", "100"))) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(List.of(new TopicPartition(topic, 0)));
            same(20, poll(consumer, 20).size());
        }
    }

    private static void readCommitted(String topic) throws Exception {
        create(topic, 1, Map.of());
        fill(topic, 50, Map.of());
        try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            TopicPartition partition = new TopicPartition(topic, 0);
            same(Map.of(partition, 50L), consumer.endOffsets(List.of(partition)));
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            same(50, poll(consumer, 50).size());
        }
    }

    private static void aThousandPartitions(String topic) throws Exception {
        create(topic, 1000, Map.of());
        try (Producer<String, String> producer = producer(Map.of())) {
            for (int p = 0; p < 1000; p++) {
                producer.send(new ProducerRecord<>(topic, p, null, String.valueOf(p)));
            }
        }
        Set<Integer> found = new HashSet<>();
        for (ConsumerRecord<String, String> record : read(topic, 1000, 1000)) {
            same(String.valueOf(record.partition()), record.value());
            found.add(record.partition());
        }
        same(1000, found.size());
        admin.deleteTopics(List.of(topic)).all().get(SECONDS, TimeUnit.SECONDS);
    }

    private static void topicsSeenByAConsumer(String topic) throws Exception {
        create(topic, 3, Map.of());
        try (Consumer<String, String> consumer = consumer(Map.of("allow.auto.create.topics", "false"))) {
            same(3, consumer.partitionsFor(topic).size());
            check(consumer.listTopics().containsKey(topic), "the topic is listed");
            same(0, consumer.partitionsFor(topic + "-unknown", Duration.ofSeconds(5)).size());
        }
    }

    // Transactions.

    private static void declareTransactions() {
        checks.put("transactions", MoldauClients::transactions);
        checks.put("transactions-at-once", MoldauClients::transactionsAtOnce);
        checks.put("transactional-offsets", MoldauClients::transactionalOffsets);
        checks.put("zombies", MoldauClients::zombies);
        checks.put("described-transactions", MoldauClients::describedTransactions);
    }

    private static void transactions(String topic) throws Exception {
        create(topic, 3, Map.of());
        try (Producer<String, String> producer = transactional(topic)) {
            for (int n = 0; n < 30; n++) {
                producer.beginTransaction();
                for (int p = 0; p < 3; p++) {
                    producer.send(new ProducerRecord<>(topic, p, null, n + "-" + p));
                }
                if (n % 3 == 1) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            consumer.assign(IntStream.range(0, 3).mapToObj(p -> new TopicPartition(topic, p)).collect(Collectors.toList()));
            consumer.seekToBeginning(consumer.assignment());
            List<ConsumerRecord<String, String>> records = poll(consumer, 60);
            for (int p = 0; p < 3; p++) {
                int partition = p;
                List<String> found = records.stream().filter(r -> r.partition() == partition)
                    .map(ConsumerRecord::value).collect(Collectors.toList());
                same(IntStream.range(0, 30).filter(n -> n % 3 != 1).mapToObj(n -> n + "-" + partition)
                    .collect(Collectors.toList()), found);
            }
            check(consumer.poll(Duration.ofMillis(300)).isEmpty(), "nothing that was aborted");
        }
    }

    private static void transactionsAtOnce(String topic) throws Exception {
        create(topic, 1, Map.of());
        List<Producer<String, String>> producers = new ArrayList<>();
        for (int n = 0; n < 5; n++) {
            producers.add(transactional(topic + "-" + n));
            producers.get(n).beginTransaction();
        }
        for (int round = 0; round < 20; round++) {
            for (int n = 0; n < 5; n++) {
                get(producers.get(n).send(new ProducerRecord<>(topic, 0, null, n + "-" + round)));
            }
        }
        for (int n = 0; n < 5; n++) {
            if (n % 2 == 0) {
                producers.get(n).commitTransaction();
            } else {
                producers.get(n).abortTransaction();
            }
            producers.get(n).close();
        }
        try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(consumer.assignment());
            List<String> wanted = new ArrayList<>();
            for (int round = 0; round < 20; round++) {
                wanted.addAll(List.of("0-" + round, "2-" + round, "4-" + round));
            }
            same(wanted, values(poll(consumer, 60)));
        }
    }

    private static void transactionalOffsets(String topic) throws Exception {
        create(topic, 1, Map.of());
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Producer<String, String> producer = transactional(topic);
             Consumer<String, String> consumer = consumer(Map.of("group.id", topic))) {
            for (long offset : new long[] {5, 9}) {
                producer.beginTransaction();
                get(producer.send(new ProducerRecord<>(topic, "until " + offset)));
                producer.sendOffsetsToTransaction(
                    Map.of(partition, new OffsetAndMetadata(offset)), new ConsumerGroupMetadata(topic));
                if (offset == 5) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
            eventually(() -> consumer.committed(Set.of(partition)).get(partition) != null);
            same(5L, consumer.committed(Set.of(partition)).get(partition).offset());
        }
    }

    private static void zombies(String topic) throws Exception {
        create(topic, 1, Map.of());
        Producer<String, String> zombie = transactional(topic);
        zombie.beginTransaction();
        get(zombie.send(new ProducerRecord<>(topic, "zombie")));
        try (Producer<String, String> successor = transactional(topic)) {
            successor.beginTransaction();
            get(successor.send(new ProducerRecord<>(topic, "alive")));
            successor.commitTransaction();
        }
        zombie.send(new ProducerRecord<>(topic, "more"));
        fails(KafkaException.class, () -> {
            zombie.commitTransaction();
            return null;
        });
        zombie.close(Duration.ZERO);
        try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(consumer.assignment());
            same(List.of("alive"), values(poll(consumer, 1)));
        }
    }

    private static void describedTransactions(String topic) throws Exception {
        create(topic, 1, Map.of());
        try (Producer<String, String> producer = transactional(topic)) {
            producer.beginTransaction();
            get(producer.send(new ProducerRecord<>(topic, "open")));
            TransactionDescription found = get(admin.describeTransactions(List.of(topic)).description(topic));
            same(TransactionState.ONGOING, found.state());
            same(Set.of(new TopicPartition(topic, 0)), found.topicPartitions());
            check(get(admin.listTransactions().all()).stream().anyMatch(each -> each.transactionalId().equals(topic)), "it is listed");
            get(admin.fenceProducers(List.of(topic)).all());
            fails(KafkaException.class, () -> {
                producer.commitTransaction();
                return null;
            });
        }
    }

    private static Producer<String, String> transactional(String id) {
        Producer<String, String> producer = producer(Map.of("transactional.id", id));
        producer.initTransactions();
        return producer;
    }

    // Topics.

    private static void declareTopics() {
        checks.put("create-describe-delete", MoldauClients::createDescribeDelete);
        checks.put("describe-and-delete-by-id", MoldauClients::describeAndDeleteById);
        checks.put("what-creation-answers", MoldauClients::whatCreationAnswers);
        checks.put("refused-topics", MoldauClients::refusedTopics);
        checks.put("add-partitions", MoldauClients::addPartitions);
        checks.put("list-offsets", MoldauClients::listOffsets);
        checks.put("delete-records", MoldauClients::deleteRecords);
    }

    private static void createDescribeDelete(String topic) throws Exception {
        create(topic, 13, Map.of());
        TopicDescription described = describe(topic);
        same(13, described.partitions().size());
        for (TopicPartitionInfo partition : described.partitions()) {
            same(1, partition.isr().size());
            same(partition.leader().id(), partition.replicas().get(0).id());
        }
        check(!described.isInternal(), "not internal");
        check(admin.listTopics().names().get(SECONDS, TimeUnit.SECONDS).contains(topic), "listed");
        admin.deleteTopics(List.of(topic)).all().get(SECONDS, TimeUnit.SECONDS);
        eventually(() -> !admin.listTopics().names().get(SECONDS, TimeUnit.SECONDS).contains(topic));
        fails(UnknownTopicOrPartitionException.class, () -> describe(topic));
    }

    private static void describeAndDeleteById(String topic) throws Exception {
        create(topic, 2, Map.of());
        Uuid id = describe(topic).topicId();
        TopicCollection.TopicIdCollection ids = TopicCollection.ofTopicIds(List.of(id));
        same(topic, admin.describeTopics(ids).allTopicIds().get(SECONDS, TimeUnit.SECONDS).get(id).name());
        admin.deleteTopics(ids).all().get(SECONDS, TimeUnit.SECONDS);
        fails(UnknownTopicIdException.class, () -> admin.deleteTopics(ids).all().get(SECONDS, TimeUnit.SECONDS));
    }

    private static void whatCreationAnswers(String topic) throws Exception {
        NewTopic wanted = new NewTopic(topic, java.util.Optional.of(4), java.util.Optional.empty()).configs(Map.of("retention.ms", "5000"));
        CreateTopicsResult created = admin.createTopics(List.of(wanted));
        same(4, created.numPartitions(topic).get(SECONDS, TimeUnit.SECONDS));
        same(1, created.replicationFactor(topic).get(SECONDS, TimeUnit.SECONDS));
        same("5000", created.config(topic).get(SECONDS, TimeUnit.SECONDS).get("retention.ms").value());
        same("delete", created.config(topic).get(SECONDS, TimeUnit.SECONDS).get("cleanup.policy").value());
        awaitTopic(topic);
        same(created.topicId(topic).get(), describe(topic).topicId());
    }

    private static void refusedTopics(String topic) throws Exception {
        create(topic, 1, Map.of());
        fails(TopicExistsException.class, () -> tryCreate(new NewTopic(topic, 1, (short) 1)));
        fails(InvalidTopicException.class, () -> tryCreate(new NewTopic("a/b", 1, (short) 1)));
        fails(InvalidPartitionsException.class, () -> tryCreate(new NewTopic(topic + "-0", 0, (short) 1)));
        fails(InvalidReplicationFactorException.class, () -> tryCreate(new NewTopic(topic + "-1", 1, (short) 3)));
        fails(InvalidReplicaAssignmentException.class, () -> tryCreate(new NewTopic(topic + "-2", Map.of(0, List.of(4242)))));
        NewTopic odd = new NewTopic(topic + "-3", 1, (short) 1).configs(Map.of("no.such", "1"));
        fails(InvalidConfigurationException.class, () -> tryCreate(odd));
        fails(UnknownTopicOrPartitionException.class,
            () -> admin.deleteTopics(List.of(topic + "-4")).all().get(SECONDS, TimeUnit.SECONDS));
        CreateTopicsOptions trial = new CreateTopicsOptions().validateOnly(true);
        admin.createTopics(List.of(new NewTopic(topic + "-5", 1, (short) 1)), trial).all().get(SECONDS, TimeUnit.SECONDS);
        check(!admin.listTopics().names().get(SECONDS, TimeUnit.SECONDS).contains(topic + "-5"), "only validated");
    }

    private static void addPartitions(String topic) throws Exception {
        create(topic, 2, Map.of());
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get(SECONDS, TimeUnit.SECONDS);
        eventually(() -> describe(topic).partitions().size() == 5);
        fails(InvalidPartitionsException.class,
            () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get(SECONDS, TimeUnit.SECONDS));
    }

    private static void listOffsets(String topic) throws Exception {
        create(topic, 1, Map.of());
        long now = System.currentTimeMillis();
        try (Producer<String, String> producer = producer(Map.of())) {
            for (long timestamp : new long[] {now, now + 500, now + 100}) {
                get(producer.send(new ProducerRecord<>(topic, 0, timestamp, null, "v")));
            }
        }
        same(0L, offset(topic, OffsetSpec.earliest()).offset());
        same(3L, offset(topic, OffsetSpec.latest()).offset());
        same(1L, offset(topic, OffsetSpec.maxTimestamp()).offset());
        same(now + 500, offset(topic, OffsetSpec.maxTimestamp()).timestamp());
        same(1L, offset(topic, OffsetSpec.forTimestamp(now + 50)).offset());
        same(-1L, offset(topic, OffsetSpec.forTimestamp(now + 5000)).offset());
        same(0L, offset(topic, OffsetSpec.earliestLocal()).offset());
    }

    private static void deleteRecords(String topic) throws Exception {
        create(topic, 1, Map.of());
        fill(topic, 100, Map.of());
        TopicPartition partition = new TopicPartition(topic, 0);
        same(60L, delete(partition, 60));
        same(60L, offset(topic, OffsetSpec.earliest()).offset());
        fails(org.apache.kafka.common.errors.OffsetOutOfRangeException.class, () -> delete(partition, 101));
        same(100L, delete(partition, -1));
    }

    // Configs.

    private static void declareConfigs() {
        checks.put("topic-configs", MoldauClients::topicConfigs);
        checks.put("refused-configs", MoldauClients::refusedConfigs);
        checks.put("broker-configs", MoldauClients::brokerConfigs);
        checks.put("cluster-wide-configs", MoldauClients::clusterWideConfigs);
        checks.put("client-quotas", MoldauClients::clientQuotas);
    }

    private static void topicConfigs(String topic) throws Exception {
        create(topic, 1, Map.of("segment.bytes", "2097152"));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        alter(resource, op("retention.ms", "1000", AlterConfigOp.OpType.SET),
            op("cleanup.policy", "compact", AlterConfigOp.OpType.APPEND));
        eventually(() -> configs(resource).get("cleanup.policy").value().equals("delete,compact"));
        ConfigEntry retention = configs(resource).get("retention.ms");
        same("1000", retention.value());
        same(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, retention.source());
        same(ConfigEntry.ConfigType.LONG, retention.type());
        check(retention.documentation() != null && retention.documentation().length() > 40, "documentation");
        same("retention.ms", retention.synonyms().get(0).name());
        ConfigEntry size = configs(resource).get("max.message.bytes");
        same(ConfigEntry.ConfigSource.DEFAULT_CONFIG, size.source());
        same("message.max.bytes", size.synonyms().get(0).name());
        alter(resource, op("retention.ms", null, AlterConfigOp.OpType.DELETE),
            op("cleanup.policy", "delete", AlterConfigOp.OpType.SUBTRACT));
        eventually(() -> configs(resource).get("cleanup.policy").value().equals("compact"));
        same("604800000", configs(resource).get("retention.ms").value());
        same("2097152", configs(resource).get("segment.bytes").value());
    }

    private static void refusedConfigs(String topic) throws Exception {
        create(topic, 1, Map.of());
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        fails(InvalidConfigurationException.class, () -> alter(resource, op("retention.ms", "soon", AlterConfigOp.OpType.SET)));
        fails(InvalidConfigurationException.class, () -> alter(resource, op("no.such", "1", AlterConfigOp.OpType.SET)));
        fails(InvalidConfigurationException.class, () -> alter(resource, op("retention.ms", "1", AlterConfigOp.OpType.APPEND)));
        ConfigResource unknown = new ConfigResource(ConfigResource.Type.TOPIC, topic + "-unknown");
        fails(UnknownTopicOrPartitionException.class, () -> configs(unknown));
        fails(UnknownTopicOrPartitionException.class, () -> alter(unknown, op("retention.ms", "1", AlterConfigOp.OpType.SET)));
    }

    private static void brokerConfigs(String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(brokerId()));
        same(ConfigEntry.ConfigSource.STATIC_BROKER_CONFIG, configs(resource).get("node.id").source());
        check(configs(resource).get("node.id").isReadOnly(), "node.id is read-only");
        alter(resource, op("background.threads", "14", AlterConfigOp.OpType.SET));
        eventually(() -> configs(resource).get("background.threads").value().equals("14"));
        same(ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG, configs(resource).get("background.threads").source());
        fails(ApiException.class, () -> alter(resource, op("background.threads", "0", AlterConfigOp.OpType.SET)));
        alter(resource, op("background.threads", null, AlterConfigOp.OpType.DELETE));
        eventually(() -> configs(resource).get("background.threads").value().equals("10"));
    }

    private static void clusterWideConfigs(String topic) throws Exception {
        create(topic, 1, Map.of());
        ConfigResource everyone = new ConfigResource(ConfigResource.Type.BROKER, "");
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(brokerId()));
        ConfigResource ofTopic = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        alter(everyone, op("log.retention.ms", "7200000", AlterConfigOp.OpType.SET));
        try {
            eventually(() -> configs(ofTopic).get("retention.ms").value().equals("7200000"));
            ConfigEntry entry = configs(broker).get("log.retention.ms");
            same(ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, entry.source());
            same("7200000", configs(everyone).get("log.retention.ms").value());
        } finally {
            alter(everyone, op("log.retention.ms", null, AlterConfigOp.OpType.DELETE));
        }
        eventually(() -> configs(ofTopic).get("retention.ms").value().equals("604800000"));
    }

    private static void clientQuotas(String topic) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, topic));
        ClientQuotaFilter filter =
            ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, topic)));
        ClientQuotaAlteration.Op set = new ClientQuotaAlteration.Op("producer_byte_rate", 100_000_000.0);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(set)))).all().get(SECONDS, TimeUnit.SECONDS);
        eventually(() -> Map.of(entity, Map.of("producer_byte_rate", 100_000_000.0))
            .equals(admin.describeClientQuotas(filter).entities().get(SECONDS, TimeUnit.SECONDS)));
        ClientQuotaAlteration.Op unset = new ClientQuotaAlteration.Op("producer_byte_rate", null);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(unset)))).all().get(SECONDS, TimeUnit.SECONDS);
        eventually(() -> admin.describeClientQuotas(filter).entities().get(SECONDS, TimeUnit.SECONDS).isEmpty());
    }

    // The cluster.

    private static void declareCluster() {
        checks.put("describe-cluster", MoldauClients::describeCluster);
        checks.put("log-dirs", MoldauClients::logDirs);
        checks.put("features", MoldauClients::features);
        checks.put("quorum", MoldauClients::quorum);
        checks.put("producers", MoldauClients::producers);
        checks.put("elections-and-reassignments", MoldauClients::electionsAndReassignments);
        checks.put("acls-need-an-authorizer", MoldauClients::aclsNeedAnAuthorizer);
    }

    private static void describeCluster(String topic) throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        Collection<Node> nodes = cluster.nodes().get(SECONDS, TimeUnit.SECONDS);
        same(1, nodes.size());
        Node node = nodes.iterator().next();
        same(bootstrap, node.host() + ":" + node.port());
        same(node.id(), cluster.controller().get(SECONDS, TimeUnit.SECONDS).id());
        same(22, cluster.clusterId().get(SECONDS, TimeUnit.SECONDS).length());
    }

    private static void logDirs(String topic) throws Exception {
        create(topic, 2, Map.of());
        fill(topic, 10, Map.of());
        Map<String, LogDirDescription> folders =
            admin.describeLogDirs(List.of(brokerId())).allDescriptions().get(SECONDS, TimeUnit.SECONDS).get(brokerId());
        same(1, folders.size());
        LogDirDescription folder = folders.values().iterator().next();
        same(null, folder.error());
        check(folder.replicaInfos().get(new TopicPartition(topic, 0)).size() > 60, "the partition has a size");
        check(folder.totalBytes().getAsLong() > 0, "the volume has a size");
    }

    private static void features(String topic) throws Exception {
        FeatureMetadata features = admin.describeFeatures().featureMetadata().get(SECONDS, TimeUnit.SECONDS);
        same((short) 30, features.finalizedFeatures().get("metadata.version").maxVersionLevel());
        check(features.supportedFeatures().containsKey("metadata.version"), "metadata.version");
    }

    private static void quorum(String topic) throws Exception {
        QuorumInfo quorum = admin.describeMetadataQuorum().quorumInfo().get(SECONDS, TimeUnit.SECONDS);
        same(brokerId(), quorum.leaderId());
        same(1, quorum.voters().size());
        check(quorum.highWatermark() > 0, "a high watermark");
    }

    private static void producers(String topic) throws Exception {
        create(topic, 1, Map.of());
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Producer<String, String> producer = producer(Map.of())) {
            for (int n = 0; n < 7; n++) {
                get(producer.send(new ProducerRecord<>(topic, "v")));
            }
            List<ProducerState> active = admin.describeProducers(List.of(partition))
                .partitionResult(partition).get(SECONDS, TimeUnit.SECONDS).activeProducers();
            same(1, active.size());
            same(6, active.get(0).lastSequence());
            check(active.get(0).currentTransactionStartOffset().isEmpty(), "no transaction");
        }
    }

    private static void electionsAndReassignments(String topic) throws Exception {
        create(topic, 1, Map.of());
        TopicPartition partition = new TopicPartition(topic, 0);
        fails(ElectionNotNeededException.class, () -> {
            Map<TopicPartition, java.util.Optional<Throwable>> elected = admin.electLeaders(ElectionType.PREFERRED, Set.of(partition))
                .partitions().get(SECONDS, TimeUnit.SECONDS);
            throw new ExecutionException(elected.get(partition).orElse(null));
        });
        same(0, admin.listPartitionReassignments().reassignments().get(SECONDS, TimeUnit.SECONDS).size());
        NewPartitionReassignment same = new NewPartitionReassignment(List.of(brokerId()));
        admin.alterPartitionReassignments(Map.of(partition, java.util.Optional.of(same))).all().get(SECONDS, TimeUnit.SECONDS);
        NewPartitionReassignment unknown = new NewPartitionReassignment(List.of(4242));
        fails(InvalidReplicaAssignmentException.class, () -> admin.alterPartitionReassignments(
            Map.of(partition, java.util.Optional.of(unknown))).all().get(SECONDS, TimeUnit.SECONDS));
    }

    private static void aclsNeedAnAuthorizer(String topic) {
        fails(SecurityDisabledException.class, () -> admin.describeAcls(AclBindingFilter.ANY).values().get(SECONDS, TimeUnit.SECONDS));
    }

    // What the checks share.

    private static Producer<String, String> producer(Map<String, String> settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(settings);
        return new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
    }

    private static Consumer<String, String> consumer(Map<String, String> settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("max.poll.records", "10000");
        properties.putAll(settings);
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    private static void create(String topic, int partitions, Map<String, String> configs) throws Exception {
        tryCreate(new NewTopic(topic, partitions, (short) 1).configs(configs));
        awaitTopic(topic);
    }

    /** A broker may know a topic a moment after it was created. */
    private static void awaitTopic(String topic) throws Exception {
        eventually(() -> {
            try {
                return describe(topic).partitions().stream().allMatch(p -> p.leader() != null);
            } catch (ExecutionException notYet) {
                return false;
            }
        });
    }

    private static Void tryCreate(NewTopic topic) throws Exception {
        return admin.createTopics(List.of(topic)).all().get(SECONDS, TimeUnit.SECONDS);
    }

    private static TopicDescription describe(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get(SECONDS, TimeUnit.SECONDS).get(topic);
    }

    private static int brokerId() throws Exception {
        return admin.describeCluster().nodes().get(SECONDS, TimeUnit.SECONDS).iterator().next().id();
    }

    private static ListOffsetsResult.ListOffsetsResultInfo offset(String topic, OffsetSpec spec) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get(SECONDS, TimeUnit.SECONDS);
    }

    private static long delete(TopicPartition partition, long before) throws Exception {
        return admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(before)))
            .lowWatermarks().get(partition).get(SECONDS, TimeUnit.SECONDS).lowWatermark();
    }

    private static AlterConfigOp op(String name, String value, AlterConfigOp.OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    private static Void alter(ConfigResource resource, AlterConfigOp... operations) throws Exception {
        return admin.incrementalAlterConfigs(Map.of(resource, Arrays.asList(operations))).all().get(SECONDS, TimeUnit.SECONDS);
    }

    private static Config configs(ConfigResource resource) throws Exception {
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        return admin.describeConfigs(List.of(resource), options).all().get(SECONDS, TimeUnit.SECONDS).get(resource);
    }

    private static void fill(String topic, int count, Map<String, String> settings) throws Exception {
        try (Producer<String, String> producer = producer(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int n = 0; n < count; n++) {
                sent.add(producer.send(new ProducerRecord<>(topic, 0, null, String.valueOf(n))));
            }
            for (Future<RecordMetadata> future : sent) {
                get(future);
            }
        }
    }

    private static List<ConsumerRecord<String, String>> read(String topic, int partitions, int count) {
        List<TopicPartition> all = IntStream.range(0, partitions)
            .mapToObj(p -> new TopicPartition(topic, p)).collect(Collectors.toList());
        try (Consumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            return poll(consumer, count);
        }
    }

    private static List<ConsumerRecord<String, String>> poll(Consumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        long deadline = System.nanoTime() + SECONDS * 1_000_000_000L;
        while (records.size() < count) {
            check(System.nanoTime() < deadline, records.size() + " of " + count + " records after " + SECONDS + " s");
            consumer.poll(Duration.ofMillis(500)).forEach(records::add);
        }
        return records;
    }

    private static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::value).collect(Collectors.toList());
    }

    private static <T> T get(Future<T> future) throws Exception {
        return future.get(SECONDS, TimeUnit.SECONDS);
    }

    private static void eventually(Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + SECONDS * 1_000_000_000L;
        while (!condition.call()) {
            check(System.nanoTime() < deadline, "not within " + SECONDS + " s");
            Thread.sleep(50);
        }
    }

    private static void fails(Class<? extends Throwable> expected, Callable<?> action) {
        try {
            action.call();
        } catch (Throwable problem) {
            Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
            check(expected.isInstance(cause), "expected " + expected.getSimpleName() + ", got " + cause);
            return;
        }
        throw new AssertionError("expected " + expected.getSimpleName() + ", but it went well");
    }

    private static void same(Object expected, Object actual) {
        Object left = expected instanceof Integer && actual instanceof Long ? Long.valueOf((Integer) expected) : expected;
        check(java.util.Objects.equals(left, actual), "expected " + shortened(left) + ", got " + shortened(actual));
    }

    private static String shortened(Object value) {
        String text = String.valueOf(value);
        return text.length() > 200 ? text.substring(0, 200) + "…" : text;
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}
