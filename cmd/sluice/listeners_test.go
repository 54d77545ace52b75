package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOperatorsMayHaveAListenerOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := open(t, "--data-dir", t.TempDir(), "--admin-listen", "127.0.0.1:0")
	operators := &site{process: s.process, url: s.says(`msg=operators .*url=(\S+)`), ops: s.ops}
	sale := freshID()
	operators.apply(saleFile(t, sale, 3, running))
	for _, path := range []string{"/admin/sales", "/admin/sales/" + sale, "/admin/about", "/%61dmin/sales", "//admin/sales"} {
		want(t, "the status of "+path+" where shoppers are", s.ask(http.MethodGet, path, e2eAdmin, "").status, http.StatusNotFound)
	}
	want(t, "the status for operators", operators.ask(http.MethodGet, "/admin/sales/"+sale, e2eAdmin, "").status, http.StatusOK)
	want(t, "the status of a shopper's call where operators are", operators.ask(http.MethodGet, "/sales/"+sale, "", "").status, http.StatusNotFound)
	for flag, args := range map[string][]string{
		"--url":       {"audit", sale, "--url", s.url},
		"--admin-url": {"crowd", "--sale", sale, "--users", "1", "--url", s.url},
	} {
		code, out, said := command(t, args...)
		says := ": there is no admin API at " + s.url + ": where operators have a listener of their own (serve --admin-listen), give its URL with " + flag + "\n"
		if code != exitFailed || out != "" || !strings.HasSuffix(said, says) || strings.Count(said, "sluice: ") != 1 {
			t.Errorf("sluice %s exits with %d and says %q", args[0], code, said)
		}
	}
	report := s.crowd(sale, 2, "--admin-url", operators.url, "--ramp", "0s", "--grab-delay", "0s").report()
	results(t, report, map[string]int64{"success": 2})
	want(t, "units of the audit", report.Sold, 2)
	code, _, said := command(t, "audit", "another", "--url", operators.url)
	if code != exitFailed || strings.Contains(said, "--admin-listen") {
		t.Errorf("of a sale that is not there it is said %q", said)
	}
	for url, status := range map[string]int{
		s.url + "/admin": 404, s.url + "/admin/sales": 404, s.url + "/s/" + sale: 200,
		operators.url + "/admin": 200, operators.url + "/": 200, operators.url + "/s/" + sale: 404,
	} {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		want(t, "the status of "+url, resp.StatusCode, status)
	}
}

func TestACertificateIsServedAndRenewedWithoutARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	makeCertificate(t, cert, key, 1)
	s := open(t, "--data-dir", dir, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("it serves at %s", s.url)
	}
	serial := func(config *tls.Config) int64 {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), config)
		if err != nil {
			return 0
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	open := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the certificate is this test's own
	want(t, "the certificate", serial(open), 1)
	want(t, "the certificate by TLS 1.1", serial(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}), 0) //nolint:gosec // it must be refused
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: open, DisableKeepAlives: true}}
	resp, err := client.Get(s.url + "/api/v1/sales")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	want(t, "the status by HTTPS", resp.StatusCode, http.StatusOK)
	if resp.Header.Get("Strict-Transport-Security") == "" {
		t.Error("browsers are not told to come by HTTPS always")
	}
	makeCertificate(t, cert, key, 2)
	eventually(t, "the new certificate is served", func() bool { return serial(open) == 2 })
}

func TestAnUnusableCertificateLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	makeCertificate(t, cert, key, 1)
	c, err := openCertificate(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c.now = func() time.Time { return now }
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(cert, []byte("half of a fi"), 0o600) },
		func() error { return os.Remove(cert) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(certificateLook)
		pair, err := c.get(nil)
		if err != nil || pair == nil {
			t.Errorf("no certificate is served: %v", err)
		}
	}
	if _, err := openCertificate(cert, key, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("it starts without a certificate")
	}
}

// makeCertificate writes a certificate for this machine, with a key, each file in one step.
func makeCertificate(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "sluice"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(file+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRoomFollowsFromDescriptorsAndMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files, memory uint64
		secure        bool
		want          int
	}{
		{20_000, 64 << 30, false, 20_000 - ownFiles - 80},
		{1 << 20, 1 << 30, false, 1 << 29 / connMemory},
		{1 << 20, 1 << 30, true, 1 << 29 / connMemoryTLS},
		{256, 64 << 30, false, fewestConns},
	} {
		want(t, "the room", room(c.files, c.memory, 80, c.secure), c.want)
	}
	root := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sys/fs/cgroup/memory.max", "max\n")
	write("proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\n")
	want(t, "the memory of the machine", memoryUnder(root, 1<<40), 1<<20)
	want(t, "the memory that Go was told", memoryUnder(root, 1<<19), 1<<19)
	write("sys/fs/cgroup/memory.max", "8192\n")
	want(t, "the memory of the control group", memoryUnder(root, 1<<40), 8192)
	write("sys/fs/cgroup/system.slice/memory.max", "4096\n")
	write("sys/fs/cgroup/system.slice/sluice.service/memory.max", "max\n")
	write("sys/fs/cgroup/other.slice/memory.max", "1\n")
	write("sys/fs/cgroup/memory/system.slice/memory.limit_in_bytes", "2048\n")
	write("proc/self/cgroup", "7:pids:/other.slice\n0::/system.slice/sluice.service\n")
	want(t, "the memory of a group above that of the service", memoryUnder(root, 1<<40), 4096)
	write("proc/self/cgroup", "3:memory:/system.slice\n")
	want(t, "the memory of a group of the first version", memoryUnder(root, 1<<40), 2048)
}
