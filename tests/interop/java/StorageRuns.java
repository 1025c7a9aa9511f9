import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Base64;
import kafka.tools.StorageTool;

/** Runs StorageTool for each command line (tabs between arguments) and prints exit code, output and complaint. */
public class StorageRuns {
    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            int code = 1;
            String complaint = "";
            try {
                code = StorageTool.execute(line.split("\t", -1), new PrintStream(said));
            } catch (Throwable refused) {
                complaint = String.valueOf(refused.getMessage());
            }
            out.println("run\t" + code + "\t" + encode(said.toByteArray()) + "\t" + encode(complaint.getBytes("UTF-8")));
            out.flush();
        }
    }

    private static String encode(byte[] data) {
        return Base64.getEncoder().encodeToString(data);
    }
}
