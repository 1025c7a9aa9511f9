import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.SimpleRecord;

/**
 * Reads lines of record batches in hexadecimal and prints the records inside, one line for each batch; a line
 * "build CODEC COUNT" instead asks for a batch of that many records.
 */
public class RecordBytes {
    public static void main(String[] arguments) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(line.startsWith("build") ? build(line.split(" ")) : describe(line));
        }
    }

    static String build(String[] words) {
        SimpleRecord[] records = new SimpleRecord[Integer.parseInt(words[2])];
        for (int i = 0; i < records.length; i++) {
            byte[] key = i % 3 == 0 ? null : ("key-" + i).getBytes();
            byte[] value = i % 5 == 0 ? null : ("value-" + i + "-").repeat(i % 50).getBytes();
            Header[] headers = i % 7 != 0 ? Record.EMPTY_HEADERS
                : new Header[] {new RecordHeader("h", ("" + i).getBytes()), new RecordHeader("null", (byte[]) null)};
            records[i] = new SimpleRecord(1_700_000_000_000L + i * 10L, key, value, headers);
        }
        var compression = Compression.of(CompressionType.forName(words[1])).build();
        return hex(MemoryRecords.withRecords(compression, records).buffer());
    }

    static String describe(String batch) {
        var text = new StringBuilder();
        try {
            var records = MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(batch)));
            for (var found : records.batches()) {
                found.ensureValid();
                for (Record record : found) {
                    text.append(record.offset()).append(',').append(record.timestamp()).append(',');
                    text.append(hex(record.key())).append(',').append(hex(record.value()));
                    for (Header header : record.headers()) {
                        text.append(',').append(header.key()).append('=');
                        text.append(header.value() == null ? "null" : HexFormat.of().formatHex(header.value()));
                    }
                    text.append(';');
                }
            }
        } catch (RuntimeException e) {
            return "error " + e;
        }
        return text.toString();
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "null";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
