import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Scanner;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Names of certificates in Java, and the principals that Kafka makes of them. Lines of standard input:
 *
 *   NAME hex              the name in DER
 *   RULE rules name       ssl.principal.mapping.rules and a name, both in Base64
 *
 * Prints the kind and the result in Base64, or "error".
 */
public class CertificateNames {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        StringBuilder output = new StringBuilder();
        while (lines.hasNextLine()) {
            String[] fields = lines.nextLine().split("\t", -1);
            String result;
            try {
                result = encode(fields[0].equals("NAME") ? name(fields[1]) : mapped(fields[1], fields[2]));
            } catch (Exception | StackOverflowError error) {
                result = "error";
            }
            output.append(fields[0]).append('\t').append(result).append('\n');
        }
        System.out.print(output);
    }

    static String name(String hex) {
        return new X500Principal(HexFormat.of().parseHex(hex)).getName();
    }

    static String mapped(String rules, String name) throws Exception {
        return SslPrincipalMapper.fromRules(decode(rules)).getName(decode(name));
    }

    static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    static String decode(String text) {
        return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }
}
