package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// load reads compose files as compose does, which validates them against the schema of the specification, and what that
// cannot say: dependencies, secrets, volumes. They lie beside the secrets that deploy/secrets.sh makes.
func load(t *testing.T, names ...string) *types.Project {
	t.Helper()
	folder := t.TempDir()
	var files []string
	for _, name := range append([]string{"deploy/secrets.sh"}, names...) {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o700); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if out, err := exec.Command("sh", files[0]).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	options, err := cli.NewProjectOptions(files[1:], cli.WithName("sluice"), cli.WithWorkingDirectory(folder))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestTheComposeFileIsWhatComposeTakes(t *testing.T) {
	t.Parallel()
	project := load(t, "docker-compose.yml")
	for name, service := range project.Services {
		if service.HealthCheck == nil {
			t.Errorf("%s has no health check, so nothing can wait for it", name)
		}
		if service.Deploy == nil || service.Deploy.Resources.Limits == nil || service.Deploy.Resources.Limits.MemoryBytes == 0 {
			t.Errorf("%s may take all memory of the machine", name)
		}
		if service.Image == "sluice" && (!service.ReadOnly || !slices.Contains(service.CapDrop, "ALL")) {
			t.Errorf("%s may write to its image, or has rights that it does not need", name)
		}
	}
}

func TestOnPostgreSQLNothingIsLeftOfMySQL(t *testing.T) {
	t.Parallel()
	project := load(t, "docker-compose.yml", "deploy/compose.postgres.yml")
	if _, ok := project.Services["mysql"]; ok {
		t.Error("MySQL runs too")
	}
	for name, service := range project.Services {
		if _, ok := service.DependsOn["mysql"]; ok {
			t.Errorf("%s waits for MySQL", name)
		}
		if url := service.Environment["SLUICE_DATABASE_URL"]; service.Image == "sluice" && (url == nil || (*url)[:11] != "postgres://") {
			t.Errorf("%s writes to %v", name, url)
		}
		if _, ok := service.DependsOn["postgres"]; service.Image == "sluice" && !ok {
			t.Errorf("%s does not wait for PostgreSQL", name)
		}
	}
}
