import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * Decisions of Kafka's StandardAuthorizer. Lines of standard input, separated by tabs:
 *
 *   NEW super.users allow.everyone.if.no.acl.found
 *   ACL resource-type name pattern-type principal host operation permission
 *   ASK principal host operation resource-type name
 *   ANY principal host operation resource-type
 *
 * Prints the number of each ASK and ANY with the decision.
 */
public class AclDecisions {
    static StandardAuthorizer authorizer;
    static int asked = 0;

    public static void main(String[] arguments) throws Exception {
        Scanner lines = new Scanner(System.in, "UTF-8");
        StringBuilder output = new StringBuilder();
        while (lines.hasNextLine()) {
            String[] fields = lines.nextLine().split("\t", -1);
            switch (fields[0]) {
                case "NEW" -> begin(fields);
                case "ACL" -> authorizer.addAcl(Uuid.randomUuid(), acl(fields));
                case "ASK" -> output.append(asked++).append('\t').append(ask(fields)).append('\n');
                default -> output.append(asked++).append('\t').append(any(fields)).append('\n');
            }
        }
        System.out.print(output);
    }

    static void begin(String[] fields) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("super.users", fields[1]);
        configs.put("allow.everyone.if.no.acl.found", fields[2]);
        configs.put("node.id", 1);
        authorizer = new StandardAuthorizer();
        authorizer.configure(configs);
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        authorizer.completeInitialLoad();
    }

    static StandardAcl acl(String[] f) {
        return new StandardAcl(ResourceType.valueOf(f[1]), f[2], PatternType.valueOf(f[3]), f[4], f[5],
                AclOperation.valueOf(f[6]), AclPermissionType.valueOf(f[7]));
    }

    static String ask(String[] f) throws Exception {
        ResourcePattern resource = new ResourcePattern(ResourceType.valueOf(f[4]), f[5], PatternType.LITERAL);
        List<Action> actions = new ArrayList<>();
        actions.add(new Action(AclOperation.valueOf(f[3]), resource, 1, false, false));
        return authorizer.authorize(context(f[1], f[2]), actions).get(0).name();
    }

    static String any(String[] f) throws Exception {
        ResourceType type = ResourceType.valueOf(f[4]);
        return authorizer.authorizeByResourceType(context(f[1], f[2]), AclOperation.valueOf(f[3]), type).name();
    }

    static AuthorizableRequestContext context(String principal, String host) throws Exception {
        String[] parts = principal.split(":", 2);
        KafkaPrincipal who = new KafkaPrincipal(parts[0], parts[1]);
        InetAddress address = InetAddress.getByName(host);
        return new AuthorizableRequestContext() {
            public String listenerName() { return "PLAINTEXT"; }
            public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
            public KafkaPrincipal principal() { return who; }
            public InetAddress clientAddress() { return address; }
            public int requestType() { return 0; }
            public int requestVersion() { return 0; }
            public String clientId() { return "test"; }
            public int correlationId() { return 0; }
        };
    }
}
