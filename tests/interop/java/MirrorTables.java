import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter;
import org.apache.kafka.connect.mirror.DefaultGroupFilter;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.DefaultTopicFilter;
import org.apache.kafka.connect.mirror.IdentityReplicationPolicy;
import org.apache.kafka.connect.mirror.MirrorCheckpointConnector;
import org.apache.kafka.connect.mirror.MirrorHeartbeatConnector;
import org.apache.kafka.connect.mirror.MirrorSourceConnector;
import org.apache.kafka.connect.mirror.ReplicationPolicy;

/**
 * The settings of MirrorMaker 2's connectors with their defaults, and what its policies and filters say about the
 * names on standard input.
 */
public class MirrorTables {
    static final String SEPARATOR = "replication.policy.separator";

    public static void main(String[] arguments) throws Exception {
        var settings = new TreeMap<String, ConfigDef.ConfigKey>();
        settings.putAll(new MirrorSourceConnector().config().configKeys());
        settings.putAll(new MirrorCheckpointConnector().config().configKeys());
        settings.putAll(new MirrorHeartbeatConnector().config().configKeys());
        settings.forEach((name, key) -> {
            Object value = key.defaultValue;
            String text = value instanceof Class<?> type ? type.getName() : String.valueOf(value);
            say("setting", name, ConfigDef.NO_DEFAULT_VALUE.equals(value) ? "" : text);
        });
        var policies = new TreeMap<String, ReplicationPolicy>();
        policies.put("default", configured(new DefaultReplicationPolicy(), Map.of()));
        policies.put("identity", configured(new IdentityReplicationPolicy(), Map.of("source.cluster.alias", "us")));
        policies.put("separator", configured(new DefaultReplicationPolicy(), Map.of(SEPARATOR, "_")));
        policies.put("separator-of-topics", configured(new DefaultReplicationPolicy(),
            Map.of(SEPARATOR, "_", "replication.policy.internal.topic.separator.enabled", "false")));
        var topics = new DefaultTopicFilter();
        topics.configure(Map.of());
        var groups = new DefaultGroupFilter();
        groups.configure(Map.of());
        var configs = new DefaultConfigPropertyFilter();
        configs.configure(Map.of());
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String name = lines.readLine(); name != null; name = lines.readLine()) {
            for (var entry : policies.entrySet()) {
                var policy = entry.getValue();
                say("policy", name, entry.getKey(), policy.formatRemoteTopic("us", name) + " "
                    + policy.topicSource(name) + " " + policy.upstreamTopic(name) + " " + policy.originalTopic(name)
                    + " " + policy.isInternalTopic(name) + " " + policy.isHeartbeatsTopic(name) + " "
                    + policy.isCheckpointsTopic(name) + " " + policy.offsetSyncsTopic("eu") + " "
                    + policy.checkpointsTopic("us"));
            }
            say("filters", name, topics.shouldReplicateTopic(name) + " " + groups.shouldReplicateGroup(name) + " "
                + configs.shouldReplicateConfigProperty(name));
        }
    }

    static <P extends Configurable> P configured(P policy, Map<String, String> settings) {
        policy.configure(settings);
        return policy;
    }

    static void say(String... words) {
        System.out.println(String.join("\t", words));
    }
}
