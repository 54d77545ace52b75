import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The back end of a shop that serves only those who hold a pass of a sale of Sluice. It verifies passes by itself, with what
 * Java 17 has and Jackson: Sluice is asked for its public keys and for nothing else.
 *
 * <pre>SLUICE=https://sale.example SALE=phone-x java -cp 'jackson/*' Shop.java</pre>
 */
public final class Shop {
    private static final int LEEWAY = 2; // seconds by which clocks may differ
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String issuer;
    private final String sale;
    private final Keys keys;
    private long quietUntil = System.nanoTime();

    private Shop(String sluice, String issuer, String sale, int keysAge) {
        this.issuer = issuer;
        this.sale = sale;
        this.keys = new Keys(URI.create(sluice + "/.well-known/jwks.json"), keysAge);
    }

    /** Why a pass does not count. */
    private static final class Refused extends Exception {
        Refused(String why) {
            super(why);
        }
    }

    /** What is thrown about a pass that may be a good one: there are no keys to tell. */
    private static final class Unknown extends Exception {
    }

    /** What the pass says, when it is one of this sale that holds now. */
    private JsonNode read(String pass) throws Refused, Unknown {
        String[] parts = pass.split("\\.", -1);
        if (parts.length != 3 || pass.length() > 4096) {
            throw new Refused("it is none");
        }
        JsonNode header = parse(parts[0]);
        // Never the algorithm that the pass asks for: "none" is one, and HS256 would take the public key for a secret.
        if (!"EdDSA".equals(header.path("alg").textValue()) || !header.path("kid").isTextual()) {
            throw new Refused("it is not signed by EdDSA, with the name of a key");
        }
        PublicKey key = keys.get(header.get("kid").textValue());
        if (key == null) {
            throw new Refused("it names a key that Sluice does not have");
        }
        if (!signed(key, parts)) {
            throw new Refused("its signature is wrong");
        }
        JsonNode claims = parse(parts[1]);
        String iss = claims.path("iss").textValue();
        String aud = claims.path("aud").textValue();
        // Of this installation, and of this sale: a turn in one is none in another.
        if (!issuer.equals(iss) || !sale.equals(aud) || !sale.equals(claims.path("sale").textValue())) {
            throw new Refused("its issuer is %s and its sale %s; ISSUER is %s and SALE %s".formatted(
                claims.path("iss"), claims.path("sale"), JSON.valueToTree(issuer), JSON.valueToTree(sale)));
        }
        double now = System.currentTimeMillis() / 1000.0;
        if (!claims.path("sub").isTextual()) {
            throw new Refused("it is of nobody");
        }
        if (!claims.path("exp").isNumber() || now >= claims.get("exp").doubleValue() + LEEWAY) {
            throw new Refused("it has expired, or would hold for ever");
        }
        if (claims.path("nbf").doubleValue() > now + LEEWAY) {
            throw new Refused("it does not hold yet");
        }
        return claims;
    }

    private static boolean signed(PublicKey key, String[] parts) throws Refused {
        byte[] signed = decode(parts[2]);
        if (signed.length != 64) {
            return false; // Java does not look at what is behind a signature
        }
        try {
            Signature signature = Signature.getInstance("Ed25519");
            signature.initVerify(key);
            signature.update((parts[0] + "." + parts[1]).getBytes(StandardCharsets.US_ASCII));
            return signature.verify(signed);
        } catch (GeneralSecurityException e) {
            return false;
        }
    }

    /** What a part of a pass says. The error of the parser would repeat it, and what strangers write belongs into no log. */
    private static JsonNode parse(String part) throws Refused {
        try {
            return JSON.readTree(decode(part));
        } catch (IOException e) {
            throw new Refused("it is none");
        }
    }

    /** One pass has one form: what decodes to the same bytes is not the same pass. */
    private static byte[] decode(String part) throws Refused {
        try {
            byte[] bytes = Base64.getUrlDecoder().decode(part);
            if (Base64.getUrlEncoder().withoutPadding().encodeToString(bytes).equals(part)) {
                return bytes;
            }
        } catch (IllegalArgumentException e) {
            // as below
        }
        throw new Refused("it is none");
    }

    /**
     * The public keys of Sluice, by name. They change when an operator changes secrets: one that was withdrawn must not count for
     * ever, so all are read again every few minutes, and a name that is not known is looked up, but not more often than every
     * half minute, because anybody can make up names.
     */
    private static final class Keys {
        private static final byte[] ED25519 = HexFormat.of().parseHex("302a300506032b6570032100"); // before the key in X.509

        private final URI at;
        private final HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
        // One reads at a time: an answer of before must not replace that of afterwards.
        private final ScheduledExecutorService reader = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true); // it is not what the shop runs for
            return thread;
        });
        private Map<String, PublicKey> known = Map.of();
        private long next = System.nanoTime(); // before which they are not read again
        private CompletableFuture<Map<String, PublicKey>> reading; // one for all who wait for it

        Keys(URI at, int age) {
            if (age < 1 || age > 86400) {
                throw new IllegalArgumentException("KEYS_AGE must be 1 to 86400 seconds");
            }
            this.at = at;
            // While they cannot be read, those that are known count.
            reader.scheduleWithFixedDelay(this::readAgain, age, age, TimeUnit.SECONDS);
        }

        PublicKey get(String kid) throws Unknown {
            CompletableFuture<Map<String, PublicKey>> read;
            synchronized (this) { // never held while Sluice is asked
                if (known.containsKey(kid)) {
                    return known.get(kid);
                }
                if (System.nanoTime() - next >= 0) {
                    next = System.nanoTime() + Duration.ofSeconds(30).toNanos();
                    readAgain();
                }
                read = reading;
            }
            Map<String, PublicKey> found = read.join();
            if (found == null) {
                throw new Unknown();
            }
            return found.get(kid);
        }

        private synchronized void readAgain() {
            reading = CompletableFuture.supplyAsync(this::load, reader);
        }

        /** The keys of Sluice, or null: why is in the log. */
        private Map<String, PublicKey> load() {
            try {
                Map<String, PublicKey> found = fetch();
                synchronized (this) {
                    known = found;
                }
                return found;
            } catch (Exception e) { // whatever it is, those who wait are told
                System.err.println("the keys of Sluice at " + at + " cannot be read: " + (e.getMessage() == null ? e : e.getMessage()));
                synchronized (this) {
                    next = System.nanoTime() + Duration.ofSeconds(1).toNanos();
                }
                return null;
            }
        }

        private Map<String, PublicKey> fetch() throws Exception {
            var asked = client.sendAsync(HttpRequest.newBuilder(at).build(), BodyHandlers.ofString());
            HttpResponse<String> answer;
            try {
                answer = asked.get(5, TimeUnit.SECONDS); // the timeout of a request would not count for its body
            } catch (TimeoutException e) {
                asked.cancel(true);
                throw new IOException("no answer within 5 s");
            } catch (ExecutionException e) {
                throw e.getCause() instanceof Exception cause ? cause : e;
            }
            if (answer.statusCode() != 200) {
                throw new IOException("the answer is " + answer.statusCode());
            }
            Map<String, PublicKey> found = new HashMap<>();
            for (JsonNode jwk : JSON.readTree(answer.body()).path("keys")) {
                if (jwk.path("kty").asText().equals("OKP") && jwk.path("crv").asText().equals("Ed25519")) {
                    try {
                        byte[] x = decode(jwk.path("x").asText());
                        byte[] encoded = new byte[ED25519.length + x.length];
                        System.arraycopy(ED25519, 0, encoded, 0, ED25519.length);
                        System.arraycopy(x, 0, encoded, ED25519.length, x.length);
                        found.put(jwk.path("kid").asText(), KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded)));
                    } catch (Refused | GeneralSecurityException e) {
                        // one that is none is no reason to keep others of before
                    }
                }
            }
            if (found.isEmpty()) {
                throw new IOException("there are none");
            }
            return found;
        }
    }

    private void serve(HttpExchange exchange) throws IOException {
        String pass = exchange.getRequestHeaders().getFirst("X-Sluice-Pass");
        String authorization = exchange.getRequestHeaders().getFirst("Authorization");
        if (pass == null && authorization != null && authorization.startsWith("Bearer ")) {
            pass = authorization.substring("Bearer ".length());
        }
        int status = 200;
        Map<String, Object> answer;
        try {
            if (pass == null) {
                throw new Refused("there is none");
            }
            JsonNode claims = read(pass);
            answer = Map.of("user", claims.get("sub"), "seat", claims.path("seat"), "order", claims.path("order").asText(""));
        } catch (Unknown e) { // which is in the log
            status = 503;
            answer = Map.of("error", "passes cannot be checked right now");
            exchange.getResponseHeaders().set("Retry-After", "1");
        } catch (Refused e) {
            status = 401;
            answer = Map.of("error", "a pass of this sale is needed");
            if (pass != null) {
                complain(e.getMessage());
            }
        }
        byte[] body = JSON.writeValueAsBytes(answer);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.getResponseHeaders().set("Cache-Control", "no-store");
        exchange.sendResponseHeaders(status, body.length);
        try (var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    /** Says why a pass was refused; once a second, or strangers could fill the log. */
    private synchronized void complain(String why) {
        if (System.nanoTime() - quietUntil >= 0) {
            quietUntil = System.nanoTime() + Duration.ofSeconds(1).toNanos();
            System.err.println("a pass was refused: " + why);
        }
    }

    public static void main(String[] args) throws IOException {
        Map<String, String> env = System.getenv();
        Shop shop = new Shop(
            env.getOrDefault("SLUICE", "http://127.0.0.1:8080"), env.getOrDefault("ISSUER", "sluice"), env.getOrDefault("SALE", "phone-x"),
            Integer.parseInt(env.getOrDefault("KEYS_AGE", "300")));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(env.getOrDefault("PORT", "3000"))), 0);
        server.createContext("/", shop::serve);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        System.err.println("listening on http://127.0.0.1:" + server.getAddress().getPort());
    }
}
