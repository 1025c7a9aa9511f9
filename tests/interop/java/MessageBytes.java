import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

/**
 * Reads lines "class, version, JSON, hexadecimal bytes", separated by tabs. Answers each with the bytes that
 * Kafka makes of the JSON and the JSON that it makes of the bytes.
 */
public class MessageBytes {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var output = new java.io.PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(answer(line.split("\t")));
        }
        output.flush();
    }

    static String answer(String[] question) throws Exception {
        try {
            Class<?> type = Class.forName(question[0]);
            short version = Short.parseShort(question[1]);
            Class<?> converter = Class.forName(question[0] + "JsonConverter");
            Object message = converter.getMethod("read", JsonNode.class, short.class)
                .invoke(null, new ObjectMapper().readTree(question[2]), version);
            ByteBuffer written = MessageUtil.toByteBufferAccessor((Message) message, version).buffer();
            byte[] bytes = new byte[written.remaining()];
            written.get(bytes);
            byte[] given = HexFormat.of().parseHex(question.length > 3 ? question[3] : "");
            var readable = new ByteBufferAccessor(ByteBuffer.wrap(given));
            Object read = type.getConstructor(Readable.class, short.class).newInstance(readable, version);
            Object json = converter.getMethod("write", type, short.class).invoke(null, read, version);
            return HexFormat.of().formatHex(bytes) + "\t" + json + "\t" + readable.remaining();
        } catch (InvocationTargetException e) {
            return "error\t" + e.getCause() + "\t0";
        }
    }
}
