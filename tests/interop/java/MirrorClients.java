import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * What MirrorMaker 2's own client finds on a cluster: the topics of mirrors, the distance of clusters by their
 * heartbeats, and the translated offsets of a group.
 *
 * Arguments: the alias of the source, the group; then settings as name=value.
 */
public class MirrorClients {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        for (String argument : List.of(arguments).subList(2, arguments.length)) {
            String[] parts = argument.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        String source = arguments[0];
        try (var client = new MirrorClient(settings)) {
            say("heartbeats", new TreeSet<>(client.heartbeatTopics()));
            say("checkpoints", new TreeSet<>(client.checkpointTopics()));
            say("remote", new TreeSet<>(client.remoteTopics(source)));
            say("upstream", new TreeSet<>(client.upstreamClusters()));
            say("hops", client.replicationHops(source));
        }
        var offsets = RemoteClusterUtils.translateOffsets(settings, source, arguments[1], Duration.ofSeconds(20));
        var found = new TreeMap<String, String>();
        offsets.forEach((where, offset) -> found.put(where.toString(), offset.offset() + " " + offset.metadata()));
        say("offsets", found);
    }

    static void say(String what, Object details) {
        System.out.println(what + "\t" + details);
    }
}
