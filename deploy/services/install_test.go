package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// aptGet is a program in the place of apt-get that writes down how it is called; installing lua-check brings luacheck.
const aptGet = `#!/bin/sh
here=$(dirname "$0")
echo "$DEBIAN_FRONTEND $RUNLEVEL $*" >>"$here/calls"
case "$*" in
*" install "*" lua-check") printf '#!/bin/sh\n' >"$here/luacheck" && chmod 755 "$here/luacheck" ;;
*" install "*) echo "E: it is not to be had" >&2; exit 100 ;;
esac
`

// machine makes a folder the only PATH and the place of temporary files, with what installing takes and nothing else,
// and returns it.
func machine(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"apt-get": aptGet, "sudo": "#!/bin/sh\nshift\nexec \"$@\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"env", "sh", "true", "dirname", "chmod"} {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("TMPDIR", dir)
	return dir
}

func TestWhatIsMissingIsInstalledOnceWithoutAskingOrStartingServices(t *testing.T) {
	dir := machine(t)
	for range 2 {
		var progress strings.Builder
		if code, err := run(nil, []string{"--install", "luacheck"}, &progress, &progress); code != 0 || err != nil {
			t.Fatalf("run = %d, %v, want 0 and no error; it said:\n%s", code, err, progress.String())
		}
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	const options = "noninteractive 1 -qq -o DPkg::Lock::Timeout=300 "
	want := []string{options + "update", options + "install -y --no-install-recommends lua-check"}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(calls)), "\n")); diff != "" {
		t.Errorf("calls of apt-get, -want +got:\n%s", diff)
	}
}

func TestAnInstallationThatFailsIsOurFailureAndNotTheCommands(t *testing.T) {
	machine(t)
	var progress strings.Builder
	code, err := run(nil, []string{"--with", "packages", "--only", "node", "--", "true"}, &progress, &progress)
	if code != 1 || err == nil {
		t.Fatalf("run = %d, %v, want 1 and an error: apt-get's 100 would pass for the command's", code, err)
	}
	for _, part := range []string{"apt-get install nodejs npm", "E: it is not to be had"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %q, want it to say %q", err, part)
		}
	}
}
