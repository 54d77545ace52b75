import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
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
import java.util.concurrent.Executors;

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

    private Shop(String sluice, String issuer, String sale) {
        this.issuer = issuer;
        this.sale = sale;
        this.keys = new Keys(URI.create(sluice + "/.well-known/jwks.json"));
    }

    /** What the pass says, or null when it is not one of this sale that holds now. */
    private JsonNode read(String pass) {
        String[] parts = pass.split("\\.", -1);
        if (parts.length != 3 || pass.length() > 4096) {
            return null;
        }
        try {
            JsonNode header = JSON.readTree(decode(parts[0]));
            // Never the algorithm that the pass asks for: "none" is one, and HS256 would take the public key for a secret.
            if (!"EdDSA".equals(header.path("alg").textValue()) || !header.path("kid").isTextual()) {
                return null;
            }
            PublicKey key = keys.get(header.get("kid").textValue());
            if (key == null) {
                return null;
            }
            byte[] signed = decode(parts[2]);
            if (signed.length != 64) {
                return null; // Java does not look at what is behind a signature
            }
            Signature signature = Signature.getInstance("Ed25519");
            signature.initVerify(key);
            signature.update((parts[0] + "." + parts[1]).getBytes(StandardCharsets.US_ASCII));
            if (!signature.verify(signed)) {
                return null;
            }
            JsonNode claims = JSON.readTree(decode(parts[1]));
            double now = System.currentTimeMillis() / 1000.0;
            boolean good = issuer.equals(claims.path("iss").textValue()) // of this installation
                && sale.equals(claims.path("aud").textValue()) // of this sale: a turn in one is none in another
                && sale.equals(claims.path("sale").textValue())
                && claims.path("sub").isTextual()
                && claims.path("exp").isNumber() // a pass without an end would be one for ever
                && now < claims.get("exp").doubleValue() + LEEWAY
                && claims.path("nbf").doubleValue() <= now + LEEWAY;
            return good ? claims : null;
        } catch (IOException | GeneralSecurityException | IllegalArgumentException e) {
            return null; // no JSON, no signature, or no keys
        }
    }

    /** One pass has one form: what decodes to the same bytes is not the same pass. */
    private static byte[] decode(String part) {
        byte[] bytes = Base64.getUrlDecoder().decode(part);
        if (!Base64.getUrlEncoder().withoutPadding().encodeToString(bytes).equals(part)) {
            throw new IllegalArgumentException("not the one way to write it");
        }
        return bytes;
    }

    /**
     * The public keys of Sluice, by name. They change when an operator changes secrets, so a name that is not known is looked
     * up, but not more often than every half minute: anybody can make up names.
     */
    private static final class Keys {
        private static final byte[] ED25519 = HexFormat.of().parseHex("302a300506032b6570032100"); // before the key in X.509

        private final URI at;
        private final HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
        private Map<String, PublicKey> known = Map.of();
        private long looked = System.nanoTime() - Duration.ofMinutes(1).toNanos();

        Keys(URI at) {
            this.at = at;
        }

        synchronized PublicKey get(String kid) throws IOException, GeneralSecurityException {
            if (!known.containsKey(kid) && System.nanoTime() - looked > Duration.ofSeconds(30).toNanos()) {
                looked = System.nanoTime();
                known = load();
            }
            return known.get(kid);
        }

        private Map<String, PublicKey> load() throws IOException, GeneralSecurityException {
            String text;
            try {
                var answer = client.send(HttpRequest.newBuilder(at).timeout(Duration.ofSeconds(5)).build(), BodyHandlers.ofString());
                if (answer.statusCode() != 200) {
                    throw new IOException("the keys of Sluice: " + answer.statusCode());
                }
                text = answer.body();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IOException(e);
            }
            Map<String, PublicKey> found = new HashMap<>();
            for (JsonNode jwk : JSON.readTree(text).path("keys")) {
                if (jwk.path("kty").asText().equals("OKP") && jwk.path("crv").asText().equals("Ed25519")) {
                    byte[] x = decode(jwk.path("x").asText());
                    byte[] encoded = new byte[ED25519.length + x.length];
                    System.arraycopy(ED25519, 0, encoded, 0, ED25519.length);
                    System.arraycopy(x, 0, encoded, ED25519.length, x.length);
                    found.put(jwk.path("kid").asText(), KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded)));
                }
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
        JsonNode claims = pass == null ? null : read(pass);
        Map<String, Object> answer = claims == null
            ? Map.of("error", "a pass of this sale is needed")
            : Map.of("user", claims.get("sub"), "seat", claims.path("seat"), "order", claims.path("order").asText(""));
        byte[] body = JSON.writeValueAsBytes(answer);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.getResponseHeaders().set("Cache-Control", "no-store");
        exchange.sendResponseHeaders(claims == null ? 401 : 200, body.length);
        try (var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    public static void main(String[] args) throws IOException {
        Map<String, String> env = System.getenv();
        Shop shop = new Shop(
            env.getOrDefault("SLUICE", "http://127.0.0.1:8080"), env.getOrDefault("ISSUER", "sluice"), env.getOrDefault("SALE", "phone-x"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(env.getOrDefault("PORT", "3000"))), 0);
        server.createContext("/", shop::serve);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        System.err.println("listening on http://127.0.0.1:" + server.getAddress().getPort());
    }
}
