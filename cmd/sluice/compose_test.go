package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v4"
)

// root is the top of the tree, from the folder in which tests of this package run.
const root = "../.."

// composition is what the tests look at in a compose file.
type composition struct {
	Services map[string]struct {
		Image       string
		EnvFile     string `yaml:"env_file"`
		Command     []string
		Environment map[string]string
		Secrets     []any
		Volumes     []string
		Healthcheck map[string]any
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	}
	Volumes map[string]any
	Secrets map[string]struct{ File string }
}

func readComposition(t *testing.T) composition {
	t.Helper()
	var c composition
	if err := yaml.Unmarshal(readFile(t, "docker-compose.yml"), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Services) == 0 {
		t.Fatal("docker-compose.yml has no services")
	}
	return c
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestComposeRefersOnlyToWhatIsThere(t *testing.T) {
	t.Parallel()
	c := readComposition(t)
	made := makeSecrets(t)
	for name, s := range c.Services {
		for other, wanted := range s.DependsOn {
			service, ok := c.Services[other]
			if !ok {
				t.Errorf("%s depends on %s, which is no service", name, other)
			}
			if wanted.Condition == "service_healthy" && service.Healthcheck == nil {
				t.Errorf("%s waits until %s is healthy, which has no health check", name, other)
			}
		}
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[source]; ok {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, source)); err != nil {
				t.Errorf("%s mounts %s: %v", name, source, err)
			}
		}
		for _, secret := range s.Secrets {
			if long, ok := secret.(map[string]any); ok {
				secret = long["source"]
			}
			if _, ok := c.Secrets[secret.(string)]; !ok {
				t.Errorf("%s asks for the secret %v, which is not declared", name, secret)
			}
		}
		if s.EnvFile != "" && !slices.Contains(made, s.EnvFile) {
			t.Errorf("%s reads %s, which deploy/secrets.sh does not make", name, s.EnvFile)
		}
	}
	for name, secret := range c.Secrets {
		if !slices.Contains(made, secret.File) {
			t.Errorf("the secret %s is %s, which deploy/secrets.sh does not make", name, secret.File)
		}
	}
}

func TestSecretsAreMadeOnceAndStay(t *testing.T) {
	t.Parallel()
	dir := copySecretsScript(t)
	contents := func() map[string]string {
		runSecretsScript(t, dir)
		files, err := filepath.Glob(filepath.Join(dir, "secrets", "*"))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(file)] = string(data)
		}
		return all
	}
	first := contents()
	for name, content := range contents() {
		if content != first[name] || len(content) < 64 {
			t.Errorf("%s was %q and is %q: want the same, of at least 64 characters", name, first[name], content)
		}
	}
	if first["secret"] == first["admin-token"] {
		t.Error("two secrets are the same")
	}
}

func TestEverySettingInContainersIsAFlag(t *testing.T) {
	t.Parallel()
	known := settingsOf(t, "serve", "worker")
	check := func(where, name string) {
		if strings.HasPrefix(name, "SLUICE_") && !slices.Contains(known, name) {
			t.Errorf("%s sets %s, which is no flag of sluice serve or sluice worker", where, name)
		}
	}
	for name, s := range readComposition(t).Services {
		for variable := range s.Environment {
			check("docker-compose.yml, service "+name+",", variable)
		}
	}
	dir := copySecretsScript(t)
	runSecretsScript(t, dir)
	variables, err := os.ReadFile(filepath.Join(dir, "secrets", "sluice.env"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"sluice.env": variables, "Dockerfile": readFile(t, "Dockerfile")} {
		found := regexp.MustCompile(`SLUICE_[A-Z_]+`).FindAllString(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s sets nothing", name)
		}
		for _, variable := range found {
			check(name, variable)
		}
	}
}

func TestCommandLinesInComposeAreUnderstood(t *testing.T) {
	t.Parallel()
	understood := 0
	for name, s := range readComposition(t).Services {
		if s.Image != "sluice" {
			continue
		}
		parser, err := kong.New(&cli{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(s.Command); err != nil {
			t.Errorf("service %s runs sluice %s: %v", name, strings.Join(s.Command, " "), err)
		}
		understood++
	}
	if understood == 0 {
		t.Error("no service runs sluice")
	}
}

func TestNginxKnowsTheNodesAndOutwaitsTheirPings(t *testing.T) {
	t.Parallel()
	conf := string(readFile(t, "deploy/nginx/sluice.conf"))
	services := readComposition(t).Services
	nodes := regexp.MustCompile(`(?m)^\s+server ([\w-]+):8080 `).FindAllStringSubmatch(conf, -1)
	if len(nodes) < 2 {
		t.Fatalf("nginx has %d nodes, want at least 2", len(nodes))
	}
	for _, node := range nodes {
		if _, ok := services[node[1]]; !ok {
			t.Errorf("nginx sends to %s, which is no service", node[1])
		}
	}
	sockets := regexp.MustCompile(`(?s)location /ws/ \{.*?proxy_read_timeout (\w+);`).FindStringSubmatch(conf)
	if sockets == nil {
		t.Fatal("nginx has no read timeout for sockets, and its own is 60s")
	}
	// A peer that is silent for 60 s is dropped by the node, which says so; nginx must not come first.
	if wait, err := time.ParseDuration(sockets[1]); err != nil || wait <= 60*time.Second {
		t.Errorf("nginx ends a silent socket after %s, want more than the node's 60s", sockets[1])
	}
}

func TestTheImageIsBuiltByTheGoOfTheModule(t *testing.T) {
	t.Parallel()
	module := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(readFile(t, "go.mod"))
	image := regexp.MustCompile(`(?m)^FROM golang:(\d+\.\d+)`).FindSubmatch(readFile(t, "Dockerfile"))
	if module == nil || image == nil || string(module[1]) != string(image[1]) {
		t.Errorf("go.mod says go %s, the Dockerfile golang:%s", module, image)
	}
}

// settingsOf returns the environment variables of the flags of commands.
func settingsOf(t *testing.T, commands ...string) []string {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.DefaultEnvars("SLUICE"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, leaf := range parser.Model.Leaves(true) {
		if !slices.Contains(commands, leaf.Name) {
			continue
		}
		for _, flags := range leaf.AllFlags(false) {
			for _, flag := range flags {
				names = append(names, flag.Envs...)
			}
		}
	}
	return names
}

// makeSecrets returns the files that deploy/secrets.sh makes, by their names in the tree.
func makeSecrets(t *testing.T) []string {
	t.Helper()
	dir := copySecretsScript(t)
	runSecretsScript(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "secrets", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		files[i] = "deploy/secrets/" + filepath.Base(file)
	}
	return files
}

// copySecretsScript puts the script into a folder of the test: it makes the secrets beside itself.
func copySecretsScript(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secrets.sh"), readFile(t, "deploy/secrets.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func runSecretsScript(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("sh", filepath.Join(dir, "secrets.sh")).CombinedOutput(); err != nil {
		t.Fatalf("secrets.sh: %v\n%s", err, out)
	}
}

func TestPodsAreAddedBeforeANodeIsFull(t *testing.T) {
	t.Parallel()
	manifest := string(readFile(t, "deploy/kubernetes/serve.yaml"))
	number := func(pattern string) int {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(manifest)
		if found == nil {
			t.Fatalf("the manifest has nothing like %s", pattern)
		}
		n, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	memory, target := number(`value: (\d+)MiB`), number(`averageValue: "(\d+)"`)
	if most := room(1<<20, uint64(memory)<<20, 80, false); target*5/4 > most {
		t.Errorf("pods are added from %d connections each on, and a node takes %d at most", target, most)
	}
}
