import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Reads regular expressions, one on each line, and prints whether each matches "orders-1", or what is wrong with it. */
public class Regexes {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            try {
                System.out.println("matches\t" + Pattern.compile(line).matcher("orders-1").matches());
            } catch (PatternSyntaxException e) {
                System.out.println("wrong\t" + e.getDescription());
            }
        }
    }
}
