import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints every setting Kafka defines: table, name, type, default, allowed values, internal, update mode. */
public class ConfigTables {
    public static void main(String[] args) {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        print("broker", AbstractKafkaConfig.CONFIG_DEF, modes);
        print("dynamic", QuotaConfig.brokerQuotaConfigs(), modes);
        print("topic", LogConfig.configDefCopy(), Map.of());
        print("group", GroupConfig.CONFIG_DEF, Map.of());
        print("client-metrics", ClientMetricsConfigs.configDef(), Map.of());
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((name, synonyms) -> synonyms.forEach(
            synonym -> System.out.println("topic-synonym\t" + name + "\t" + synonym.name())));
        for (Map.Entry<String, Optional<String>> entry : GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.entrySet()) {
            entry.getValue().ifPresent(
                synonym -> System.out.println("group-synonym\t" + entry.getKey() + "\t" + synonym));
        }
    }

    private static void print(String table, ConfigDef definitions, Map<String, String> modes) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definitions.configKeys()).values()) {
            System.out.println(String.join("\t", table, key.name, key.type.name(), defaultOf(key),
                key.validator == null ? "" : key.validator.toString(), String.valueOf(key.internalConfig),
                modes.getOrDefault(key.name, "read-only")));
        }
    }

    private static String defaultOf(ConfigDef.ConfigKey key) {
        if (key.defaultValue == ConfigDef.NO_DEFAULT_VALUE) {
            return "(required)";
        }
        return key.defaultValue == null ? "null" : "=" + ConfigDef.convertToString(key.defaultValue, key.type);
    }
}
