import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.util.Base64;
import java.util.Properties;
import kafka.server.KafkaConfig;

/** Reads properties files, one in base64 per line, and prints what Kafka thinks of each: OK, or why not. */
public class ConfigVerdicts {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Properties properties = new Properties();
            properties.load(new StringReader(new String(Base64.getDecoder().decode(line), "ISO-8859-1")));
            System.out.println("verdict\t" + verdict(properties));
        }
    }

    private static String verdict(Properties properties) {
        try {
            new KafkaConfig(properties, false);
            return "OK";
        } catch (RuntimeException refused) {
            return String.valueOf(refused.getMessage()).replace("\n", " ");
        }
    }
}
