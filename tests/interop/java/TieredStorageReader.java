import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataTopicPartitioner;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.LocalTieredStorage;
import org.apache.kafka.server.log.remote.storage.LocalTieredStorageTraverser;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentFileset;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * Reads a folder of tiered storage with LocalTieredStorage, and __remote_log_metadata with Apache's serde
 * and partitioner. Arguments: folder, bootstrap servers. Prints fields separated by tabs.
 */
public class TieredStorageReader {
    public static void main(String[] arguments) throws Exception {
        LocalTieredStorage store = new LocalTieredStorage();
        store.configure(Map.of("dir", arguments[0], "broker.id", 1));
        store.traverse(new LocalTieredStorageTraverser() {
            @Override
            public void visitTopicIdPartition(TopicIdPartition partition) {
                print("partition", partition.topic(), partition.partition(), partition.topicId());
            }

            @Override
            public void visitSegment(RemoteLogSegmentFileset files) {
                try {
                    var records = files.getRecords();
                    print("files", files.getRemoteLogSegmentId().id(), records.size(),
                        records.get(0).offset(), records.get(records.size() - 1).offset());
                } catch (Exception error) {
                    throw new RuntimeException(error);
                }
            }
        });
        Map<Uuid, RemoteLogSegmentMetadata> segments = new TreeMap<>();
        for (ConsumerRecord<byte[], byte[]> record : metadata(arguments[1])) {
            RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
            RemoteLogMetadata found = serde.deserialize(record.value());
            boolean same = Arrays.equals(serde.serialize(found), record.value());
            print("record", found.getClass().getSimpleName(), record.partition(), same, expected(found));
            if (found instanceof RemoteLogSegmentMetadata) {
                RemoteLogSegmentMetadata segment = (RemoteLogSegmentMetadata) found;
                segments.put(segment.remoteLogSegmentId().id(), segment);
            } else if (found instanceof RemoteLogSegmentMetadataUpdate) {
                RemoteLogSegmentMetadataUpdate update = (RemoteLogSegmentMetadataUpdate) found;
                Uuid id = update.remoteLogSegmentId().id();
                RemoteLogSegmentState before = segments.get(id).state();
                if (!RemoteLogSegmentState.isValidTransition(before, update.state())) {
                    throw new IllegalStateException(before + " to " + update.state());
                }
                if (update.state() == RemoteLogSegmentState.DELETE_SEGMENT_FINISHED) {
                    segments.remove(id);
                } else {
                    segments.put(id, segments.get(id).createWithUpdates(update));
                }
            }
        }
        for (RemoteLogSegmentMetadata segment : segments.values()) {
            int size;
            try (InputStream stream = store.fetchLogSegment(segment, 0)) {
                size = stream.readAllBytes().length;
            }
            int indexes = 0;
            for (RemoteStorageManager.IndexType type : RemoteStorageManager.IndexType.values()) {
                if (type != RemoteStorageManager.IndexType.TRANSACTION) {
                    try (InputStream stream = store.fetchIndex(segment, type)) {
                        stream.readAllBytes();
                        indexes++;
                    }
                }
            }
            print("segment", segment.remoteLogSegmentId().id(), segment.state(), segment.startOffset(),
                segment.endOffset(), segment.segmentSizeInBytes(), size, indexes, segment.segmentLeaderEpochs());
        }
    }

    private static int expected(RemoteLogMetadata record) {
        return new RemoteLogMetadataTopicPartitioner(3).metadataPartition(record.topicIdPartition());
    }

    private static List<ConsumerRecord<byte[], byte[]>> metadata(String servers) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        Map<String, Object> config = Map.of("bootstrap.servers", servers);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (PartitionInfo info : consumer.partitionsFor("__remote_log_metadata")) {
                partitions.add(new TopicPartition(info.topic(), info.partition()));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long left = consumer.endOffsets(partitions).values().stream().mapToLong(each -> each).sum();
            while (found.size() < left) {
                consumer.poll(Duration.ofSeconds(1)).forEach(found::add);
            }
        }
        return found;
    }

    private static void print(Object... fields) {
        List<String> texts = new ArrayList<>();
        for (Object each : fields) {
            texts.add(String.valueOf(each));
        }
        System.out.println(String.join("\t", texts));
    }
}
