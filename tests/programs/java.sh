# OpenJDK: Eclipse's compiler compiles a program of threads, collections, files, locks, a child, a local socket, garbage.
#: package openjdk-17-jre-headless,ecj
mkdir -p /tmp/j
cat >/tmp/j/A.java <<'J'
import java.io.*; import java.net.*; import java.nio.*; import java.nio.channels.*; import java.nio.file.*; import java.security.*; import java.util.*;
import java.util.concurrent.*; import java.util.concurrent.atomic.*; import java.util.regex.*; import java.util.stream.*; import java.util.zip.*;
public class A {
    record Point(int x, int y) {}
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] words) throws Exception {
        System.out.println(fib(27));
        ExecutorService pool = Executors.newFixedThreadPool(4);
        AtomicLong sum = new AtomicLong();
        List<Future<Integer>> futures = new ArrayList<>();
        for (int i = 0; i < 20; i++) { int n = i; futures.add(pool.submit(() -> { sum.addAndGet(n); return n * n; })); }
        int squares = 0; for (Future<Integer> f : futures) squares += f.get();
        pool.shutdown(); System.out.println(pool.awaitTermination(9, TimeUnit.SECONDS) + " " + sum + " " + squares);
        System.out.println(IntStream.rangeClosed(1, 1000).boxed().collect(Collectors.groupingBy(i -> i % 7, TreeMap::new, Collectors.summingInt(i -> i))));
        Matcher m = Pattern.compile("(\\w+)@(\\w+)").matcher("a@b c@d"); while (m.find()) System.out.print(m.group(2) + " "); System.out.println(new Point(1, 2));
        Path file = Files.createTempFile("j", "x"); Files.write(file, IntStream.range(0, 5000).mapToObj(String::valueOf).toList());
        try (FileChannel c = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE); FileLock lock = c.lock()) {
            MappedByteBuffer map = c.map(FileChannel.MapMode.READ_WRITE, 0, c.size()); map.put(0, (byte) 'X'); map.force(); System.out.println(lock.isValid() + " " + c.size());
        }
        System.out.println(Files.readAllLines(file).get(0) + " " + HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file))));
        Process p = new ProcessBuilder("sort", "-n").redirectErrorStream(true).start();
        try (Writer w = p.outputWriter()) { w.write("3\n1\n2\n"); } System.out.println(new String(p.getInputStream().readAllBytes()).replace("\n", ",") + p.waitFor());
        UnixDomainSocketAddress name = UnixDomainSocketAddress.of("/tmp/j/socket");
        try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            server.bind(name);
            Thread t = new Thread(() -> { try (SocketChannel c = server.accept()) { ByteBuffer b = ByteBuffer.allocate(9); c.read(b); b.flip(); c.write(b); } catch (IOException e) { e.printStackTrace(); } }); t.start();
            try (SocketChannel c = SocketChannel.open(name)) { c.write(ByteBuffer.wrap("echo".getBytes())); ByteBuffer b = ByteBuffer.allocate(9); c.read(b); System.out.println(new String(b.array(), 0, b.position())); } t.join();
        }
        Pipe pipe = Pipe.open(); Selector selector = Selector.open(); pipe.source().configureBlocking(false); pipe.source().register(selector, SelectionKey.OP_READ);
        System.out.print(selector.select(20) + " "); pipe.sink().write(ByteBuffer.wrap(new byte[3])); System.out.println(selector.select(2000));
        List<byte[]> garbage = new LinkedList<>(); long made = 0; for (int i = 0; i < 3000; i++) { garbage.add(new byte[50_000]); made += 50_000; if (garbage.size() > 100) garbage.remove(0); } System.out.println(made);
        ByteArrayOutputStream out = new ByteArrayOutputStream(); try (GZIPOutputStream z = new GZIPOutputStream(out)) { z.write(new byte[100_000]); } System.out.println(new GZIPInputStream(new ByteArrayInputStream(out.toByteArray())).readAllBytes().length);
        try { Object o = null; o.hashCode(); } catch (NullPointerException e) { System.out.println("caught"); } try { recurse(0); } catch (StackOverflowError e) { System.out.println("overflow"); }
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(1); CountDownLatch ticks = new CountDownLatch(3); timer.scheduleAtFixedRate(ticks::countDown, 1, 5, TimeUnit.MILLISECONDS); ticks.await(); timer.shutdownNow(); System.out.println("three ticks");
        System.exit(3);
    }
    static int recurse(int n) { return recurse(n + 1) + 1; }
}
J
cd /tmp/j
export JAVA_HOME=/usr/lib/jvm/java-17-openjdk-amd64
PATH=$PATH:$JAVA_HOME/bin
ecj -17 -proc:none -nowarn -d . A.java
java -Xmx128m -cp . A
echo "status $?"
