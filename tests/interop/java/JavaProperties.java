import java.io.ByteArrayInputStream;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.Properties;
import java.util.TreeMap;

/** Reads properties files, one in base64 per line, and prints keys and values of each, in base64 of UTF-8. */
public class JavaProperties {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Properties properties = new Properties();
            properties.load(new ByteArrayInputStream(Base64.getDecoder().decode(line)));
            StringBuilder answer = new StringBuilder();
            new TreeMap<>(properties).forEach((key, value) ->
                answer.append(encode(key)).append('=').append(encode(value)).append(' '));
            System.out.println("properties\t" + answer);
        }
    }

    private static String encode(Object text) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(
            text.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }
}
