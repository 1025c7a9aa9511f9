import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** Serves MongoDB's protocol on the port in the first argument, with an operation log for change streams. */
public class MongoServerMain {
    /** Current drivers refuse the wire version of the releases that the server knows. */
    private static final MongoVersion VERSION = new MongoVersion() {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(4, 4, 0, 0);
        }

        @Override
        public int getWireVersion() {
            return 9;
        }

        @Override
        public String toVersionString() {
            return "4.4.0";
        }
    };

    public static void main(String[] arguments) throws Exception {
        MongoServer server = new MongoServer(new MemoryBackend().version(VERSION));
        server.enableOplog();
        server.bind("127.0.0.1", Integer.parseInt(arguments[0]));
        Thread.currentThread().join();
    }
}
