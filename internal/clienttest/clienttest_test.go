package clienttest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// An installation is made once, by whoever comes first, only if that is asked for, and a failure reports the
// installer's output.
func TestInstall(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DPWATCH_TEST_CLIENTS", "")
	s := set{
		name: "maven", version: []string{"sh", "-c", "echo 1"}, remove: []string{"waste"},
		commands: [][]string{{"sh", "-c", "test -s pom.xml && touch waste && mkdir jars && mktemp -p jars"}},
	}
	if dir, err := s.find(); !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "DPWATCH_TEST_CLIENTS=1 installs them") {
		t.Fatalf("%q, %v; want that nothing is installed unasked", dir, err)
	}
	t.Setenv("DPWATCH_TEST_CLIENTS", "1")
	var dirs [4]string
	var wg sync.WaitGroup
	for i := range dirs {
		wg.Go(func() {
			var err error
			if dirs[i], err = s.find(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Setenv("DPWATCH_TEST_CLIENTS", "")
	again, err := s.find()
	if err != nil {
		t.Error(err)
	}
	files, _ := filepath.Glob(filepath.Join(dirs[0], "jars", "*"))
	if _, err := os.Stat(filepath.Join(dirs[0], "waste")); len(files) != 1 || err == nil || dirs != [4]string{again, again, again, again} {
		t.Errorf("%d installations in %q, then %q; want one, without what is not needed", len(files), dirs, again)
	}

	t.Setenv("DPWATCH_TEST_CLIENTS", "1")
	broken := s
	broken.commands = [][]string{{"sh", "-c", "echo the registry is away; exit 3"}}
	for range 2 {
		if dir, err := broken.find(); dir != "" || err == nil || errors.Is(err, errMissing) || !strings.Contains(err.Error(), "the registry is away") {
			t.Errorf("%q, %v; want the installer's output", dir, err)
		}
	}
	absent := s
	absent.version = []string{"no-such-program"}
	if _, err := absent.find(); err == nil || errors.Is(err, errMissing) {
		t.Errorf("%v; want a failure without the program", err)
	}
	t.Setenv("DPWATCH_TEST_CLIENTS", "")
	if _, err := absent.find(); !errors.Is(err, errMissing) {
		t.Errorf("%v; want that the test is skipped without the program", err)
	}
}

// Scripts have pairs of comments around what is left out, and something remains.
func TestScript(t *testing.T) {
	t.Parallel()
	files, err := scripts.ReadDir("scripts")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		all, some := Script(t, f.Name(), true), Script(t, f.Name(), false)
		if strings.Contains(some, "PostgreSQL only") || strings.Contains(some, "# end") || len(some) < 300 || strings.Contains(all, "PostgreSQL only") == (all == some) {
			t.Errorf("%s without what only PostgreSQL supports:\n%s", f.Name(), some)
		}
	}
}
