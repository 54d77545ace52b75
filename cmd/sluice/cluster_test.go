package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisCluster is a Redis Cluster of one test alone: three masters, each with a replica.
type redisCluster struct {
	t       *testing.T
	clients []*redis.Client
	whole   *redis.ClusterClient
	url     string
}

func newRedisCluster(t *testing.T) *redisCluster {
	t.Helper()
	c := &redisCluster{t: t}
	var addresses []string
	for range 6 {
		bus, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(bus.Addr().String())
		_ = bus.Close()
		address := ownRedis(t, "--appendonly", "yes", "--appendfsync", "always", "--cluster-enabled", "yes", "--cluster-port", port, "--cluster-node-timeout", "1500")
		client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
		t.Cleanup(func() { _ = client.Close() })
		c.clients, addresses = append(c.clients, client), append(addresses, address)
		if len(c.clients) == 1 {
			continue
		}
		first, number, _ := net.SplitHostPort(addresses[0])
		// The port of the bus is not the usual one, so it has to be said.
		busOf := c.clients[0].Do(t.Context(), "CONFIG", "GET", "cluster-port").Val()
		if err := client.Do(t.Context(), "CLUSTER", "MEET", first, number, configValue(busOf)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, slots := range [][2]int{{0, 5460}, {5461, 10922}, {10923, 16383}} {
		if err := c.clients[i].ClusterAddSlotsRange(t.Context(), slots[0], slots[1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		master := c.clients[i].Do(t.Context(), "CLUSTER", "MYID").Val().(string)
		replica := c.clients[3+i]
		eventually(t, "a replica knows its master", func() bool { return replica.ClusterReplicate(t.Context(), master).Err() == nil })
	}
	eventually(t, "the cluster is whole", func() bool {
		for i, client := range c.clients {
			if !strings.Contains(client.ClusterInfo(t.Context()).Val(), "cluster_state:ok") {
				return false
			}
			if i >= 3 && !strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up") {
				return false
			}
			if strings.Count(client.ClusterNodes(t.Context()).Val(), "slave") != 3 {
				return false
			}
		}
		return true
	})
	c.url = "redis://" + addresses[0] + "?addr=" + strings.Join(addresses[1:], "&addr=")
	c.whole = redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses})
	t.Cleanup(func() { _ = c.whole.Close() })
	return c
}

// configValue is the value in an answer of CONFIG GET, whatever its form.
func configValue(answer any) any {
	switch answer := answer.(type) {
	case map[any]any:
		for _, value := range answer {
			return value
		}
	case []any:
		return answer[1]
	}
	return nil
}

// killMasterOf kills the process that holds a key, as a power cut would.
func (c *redisCluster) killMasterOf(key string) (address string) {
	c.t.Helper()
	master, err := c.whole.MasterForKey(c.t.Context(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	var pid int
	for line := range strings.Lines(master.Info(c.t.Context(), "server").Val()) {
		if number, ok := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); ok {
			pid, _ = strconv.Atoi(number)
		}
	}
	if pid <= 1 {
		c.t.Fatal("the master does not say which process it is")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	return master.Options().Addr
}

// TestAFailoverOfARedisClusterInTheMiddleOfASaleLosesNothing kills the master that holds the sale while shoppers grab. Its
// replica takes over, the sale is put right from the orders, and everything adds up.
func TestAFailoverOfARedisClusterInTheMiddleOfASaleLosesNothing(t *testing.T) {
	t.Parallel()
	cluster := newRedisCluster(t)
	g := newGround(t, "mysql")
	flags := append([]string{"--redis-url", cluster.url}, g.flags[2:]...)
	nodes := []*site{open(t, flags...), open(t, flags...)}
	sale := freshID()
	nodes[0].apply(saleFile(t, sale, 1200, "opens_at: +3s\ncloses_at: +1h\nhold: 0s\nline: { order: fifo, rate: 300, active: 300, ratio: 0, turn: 60s }"))
	crowds := []*throng{nodes[0].crowd(sale, 800, "--prefix", "a", "--no-audit"), nodes[1].crowd(sale, 800, "--prefix", "b", "--no-audit")}
	left := func() int64 {
		_, left := nodes[0].view(sale)
		return left
	}
	eventually(t, "some hundred are sold", func() bool { n := left(); return n >= 0 && n < 1000 })
	died := cluster.killMasterOf("sluice:{" + sale + "}:meta")
	begun, before := time.Now(), left()
	eventually(t, "it sells again", func() bool { n := left(); return n >= 0 && n < before-20 })
	t.Logf("%s was killed; selling again after %s", died, time.Since(begun).Round(10*time.Millisecond))
	// Each shopper of a crowd was told the truth, or its report fails.
	for _, crowd := range crowds {
		if report := crowd.report(); report.Unanswered != 0 || report.Duplicates != 0 {
			t.Errorf("%+v", report)
		}
	}
	eventually(t, "all units are orders", func() bool {
		rows, err := rowsOf(g, "SELECT COUNT(*) FROM orders WHERE live = 1")
		return err == nil && rows == 1200
	})
	nodes[0].audit(sale)
}

// TestARedisNamedBySentinelsAndOneBehindTLSAreServed sells a unit on each.
func TestARedisNamedBySentinelsAndOneBehindTLSAreServed(t *testing.T) {
	t.Parallel()
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		host, port, _ := net.SplitHostPort(ownRedis(t))
		config := filepath.Join(t.TempDir(), "sentinel.conf")
		if err := os.WriteFile(config, []byte(fmt.Sprintf("sentinel monitor shop %s %s 1\n", host, port)), 0o600); err != nil {
			t.Fatal(err)
		}
		sellOne(t, "redis://"+ownRedisOf(t, []string{config, "--sentinel"})+"?master_name=shop")
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		cert, key := selfSigned(t)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		_, port, _ := net.SplitHostPort(address)
		_ = listener.Close()
		ownRedis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
		sellOne(t, "rediss://"+address, "SSL_CERT_FILE="+cert)
	})
}

// selfSigned makes a certificate of 127.0.0.1 that is its own authority.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis of a test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = writeFile(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	key = writeFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return cert, key
}

// sellOne holds a sale of one unit on a Redis.
func sellOne(t *testing.T, url string, variables ...string) {
	t.Helper()
	g := newGround(t, "mysql")
	s := openWith(t, variables, "127.0.0.1:0", append([]string{"--redis-url", url}, g.flags[2:]...)...)
	sale := freshID()
	s.apply(saleFile(t, sale, 1, "opens_at: +0s\ncloses_at: +1h\nline: { order: off }"))
	eventually(t, "the sale is open", func() bool { view, _ := s.view(sale); return view.State == "open" })
	if result, _ := s.grab(sale, "alice"); result != "success" {
		t.Errorf("the first is told %s", result)
	}
	if result, _ := s.grab(sale, "bob"); result != "sold_out" {
		t.Errorf("the second is told %s", result)
	}
}
