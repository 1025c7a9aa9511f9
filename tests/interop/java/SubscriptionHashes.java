import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;

/** Reads subscriptions, one on each line as name=id=racks+racks, and prints the hash that Kafka stores for each. */
public class SubscriptionHashes {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Map<String, Long> hashes = new HashMap<>();
            for (String word : line.isEmpty() ? new String[0] : line.split(" ")) {
                String[] fields = word.split("=", -1);
                List<List<String>> racks = new ArrayList<>();
                for (String partition : fields[2].split(";", -1)) {
                    racks.add(new ArrayList<>(partition.isEmpty() ? List.of() : List.of(partition.split(","))));
                }
                var topic = new Topic(fields[0], Uuid.fromString(fields[1]), racks);
                hashes.put(fields[0], Utils.computeTopicHash(fields[0], new Image(topic)));
            }
            System.out.println("hash\t" + Utils.computeGroupHash(hashes));
        }
    }

    record Topic(String name, Uuid id, List<List<String>> racks) implements CoordinatorMetadataImage.TopicMetadata {
        @Override
        public int partitionCount() {
            return racks.size();
        }

        @Override
        public List<String> partitionRacks(int partition) {
            return racks.get(partition);
        }
    }

    record Image(Topic topic) implements CoordinatorMetadataImage {
        @Override
        public Set<Uuid> topicIds() {
            return Set.of(topic.id());
        }

        @Override
        public Set<String> topicNames() {
            return Set.of(topic.name());
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.of(topic);
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.of(topic);
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override
        public long version() {
            return 0;
        }

        @Override
        public boolean isEmpty() {
            return false;
        }
    }
}
