package tracker_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

func startupBody(pairs ...string) []byte {
	return []byte("\x00\x03\x00\x00" + strings.Join(pairs, "\x00") + "\x00\x00")
}

func TestParseStartup(t *testing.T) {
	t.Parallel()
	const v3 = 3 << 16
	tests := []struct {
		name string
		in   []byte
		want tracker.Startup
	}{
		{"user only", startupBody("user", "ann"), tracker.Startup{Version: v3, User: "ann", Database: "ann", Settings: map[string]string{}}},
		{
			"all", startupBody("user", "ann", "database", "bank", "application_name", "App", "client_encoding", "UTF8",
				"DateStyle", "ISO", "_pq_.x", "1", "replication", "off"),
			tracker.Startup{Version: v3, User: "ann", Database: "bank", ApplicationName: "App", Settings: map[string]string{"datestyle": "ISO"}},
		},
		{
			"options", startupBody("user", "ann", "options", ` -c dp.epsilon=0.5  -cgeqo=off --search-path=a\ b\\c -c application_name=x`, "geqo", "on"),
			tracker.Startup{
				Version: v3, User: "ann", Database: "ann", ApplicationName: "x",
				Settings: map[string]string{"dp.epsilon": "0.5", "geqo": "on", "search_path": `a b\c`},
			},
		},
		{
			"other switches", startupBody("user", "ann", "options", "-S 64"),
			tracker.Startup{Version: v3, User: "ann", Database: "ann", Settings: map[string]string{}, SettingsUncertain: true},
		},
		{"switch without value", startupBody("user", "ann", "options", "-c"), tracker.Startup{Version: v3, User: "ann", Database: "ann", Settings: map[string]string{}, SettingsUncertain: true}},
		{
			"names in another case are settings", startupBody("User", "x", "user", "ann", "REPLICATION", "on", "TimeZone", "UTC", "timezone", "GMT", "options", "-c a.b=1", "options", "-c a.c=1"),
			tracker.Startup{Version: v3, User: "ann", Database: "ann", Settings: map[string]string{"user": "x", "replication": "on", "timezone": "GMT", "a.c": "1"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := tracker.ParseStartup(test.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, in := range map[string]string{
		"empty":        "",
		"version only": "\x00\x03\x00\x00",
		"no end":       "\x00\x03\x00\x00user\x00ann\x00",
		"no value":     "\x00\x03\x00\x00user\x00",
		"behind end":   "\x00\x03\x00\x00user\x00ann\x00\x00x",
	} {
		t.Run("bad: "+name, func(t *testing.T) {
			t.Parallel()
			if s, err := tracker.ParseStartup([]byte(in)); err == nil {
				t.Errorf("got %+v, want an error", s)
			}
		})
	}
}

// TestReplication: only physical replication is none of a session with queries. The values are those of parse_bool
// (bool.c); the server ends a session with another value.
func TestReplication(t *testing.T) {
	t.Parallel()
	physical := map[string]bool{}
	for _, v := range []string{"t", "tr", "TRUE", "y", "yE", "yes", "on", "1"} {
		physical[v] = true
	}
	for _, v := range []string{"f", "F", "fal", "false", "n", "N", "no", "of", "OFF", "0", "database", "Database", "", "o", " on", "truely", "2"} {
		physical[v] = false
	}
	for value, want := range physical {
		if s, err := tracker.ParseStartup(startupBody("user", "ann", "replication", value)); err != nil || s.Replication != want {
			t.Errorf("replication=%q: physical %t, %v", value, s.Replication, err)
		}
	}
	if s, _ := tracker.ParseStartup(startupBody("user", "ann", "replication", "true", "replication", "false")); s.Replication {
		t.Error("the last one counts")
	}
}

func FuzzParseStartup(f *testing.F) {
	f.Add(startupBody("user", "ann", "options", `-c a=b --c-d=e\ f`))
	f.Add([]byte("\x00\x03\x00\x02user\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := tracker.ParseStartup(b)
		if err == nil && s.Database == "" && s.User != "" {
			t.Errorf("no database in %+v", s)
		}
	})
}
