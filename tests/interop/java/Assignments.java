import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Reads groups, one on each line, and prints what Kafka's assignor makes of them.
 *
 * A line: assignor ("partly" is the simple one, which may not give every fifth partition), "homogeneous" or "heterogeneous", topics (id=partitions), then each member (id, instance id or
 * "-", topic ids, assignment as id=partition+partition), with spaces between them and ";" inside a member.
 */
public class Assignments {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println("assigned\t" + answer(line.split(" ")));
        }
    }

    static String answer(String[] words) {
        PartitionAssignor assignor = switch (words[0]) {
            case "range" -> new RangeAssignor();
            case "uniform" -> new UniformAssignor();
            default -> new SimpleAssignor();
        };
        var type = SubscriptionType.valueOf(words[1].toUpperCase());
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String topic : parts(words[2], ",")) {
            counts.put(Uuid.fromString(topic.split("=")[0]), Integer.parseInt(topic.split("=")[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (int i = 3; i < words.length; i++) {
            String[] fields = words[i].split(";", -1);
            Set<Uuid> subscribed = new LinkedHashSet<>();
            parts(fields[2], ",").forEach(id -> subscribed.add(Uuid.fromString(id)));
            Map<Uuid, Set<Integer>> assignment = new HashMap<>();
            for (String topic : parts(fields[3], ",")) {
                Uuid id = Uuid.fromString(topic.split("=")[0]);
                List<Integer> partitions = new ArrayList<>();
                parts(topic.split("=", -1)[1], "\\+").forEach(partition -> partitions.add(Integer.parseInt(partition)));
                assignment.put(id, new HashSet<>(partitions));
                for (int partition : partitions) {
                    inverted.computeIfAbsent(id, __ -> new HashMap<>()).put(partition, fields[0]);
                }
            }
            Optional<String> instance = fields[1].equals("-") ? Optional.empty() : Optional.of(fields[1]);
            members.put(fields[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, subscribed, new Assignment(assignment)));
        }
        Map<Uuid, Set<Integer>> open = new HashMap<>();
        counts.forEach((id, count) -> open.put(id, IntStream.range(0, count).filter(partition -> partition % 5 != 4)
            .boxed().collect(Collectors.toSet())));
        var spec = new GroupSpecImpl(Collections.unmodifiableMap(members), type, inverted,
            words[0].equals("partly") ? Optional.of(open) : Optional.empty());
        var text = new StringBuilder();
        new TreeMap<>(assignor.assign(spec, new Describer(counts)).members()).forEach((member, assignment) -> {
            text.append(member).append(';');
            Map<String, Set<Integer>> sorted = new TreeMap<>();
            assignment.partitions().forEach((id, partitions) -> sorted.put(id.toString(), new TreeSet<>(partitions)));
            sorted.forEach((id, partitions) -> {
                text.append(id).append('=');
                partitions.forEach(partition -> text.append(partition).append('+'));
            });
            text.append(' ');
        });
        return text.toString();
    }

    static List<String> parts(String text, String separator) {
        return text.isEmpty() ? List.of() : List.of(text.split(separator));
    }

    record Describer(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid id) {
            return counts.getOrDefault(id, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid id, int partition) {
            return Set.of();
        }
    }
}
