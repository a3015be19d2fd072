package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestDefaultPace: if clients use the shadow's server, trials get a tenth of the time by default, and the status, the
// log and config check report it; the configuration overrides it.
func TestDefaultPace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, upstream, audit, want string
		limit                       float64
	}{
		{"the same server", "", "{}", "audit.share 0.1: the shadow database is on the server of proxy.upstream", 0.1},
		{"another server", "127.0.0.1:1", "{}", "no limit: the shadow database is not on a server that the configuration names for clients", 4},
		{"sessions are set", "", "{sessions: 3}", "", 3},
		{"no limit is set", "", "{share: 1}", "", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := &sidecar{direct: copies(t)}
			cfg, err := pgx.ParseConfig(s.direct)
			if err != nil {
				t.Fatal(err)
			}
			if tc.upstream == "" {
				tc.upstream = fmt.Sprintf("%s:%d", cfg.Host, cfg.Port)
			}
			path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q}
privacy: {protected: [public.people]}
audit: %s
`, tc.upstream, s.direct, tc.audit))
			check := call(t, "", "doctor", "--config", path)
			if tc.want != "" && !strings.Contains(check.stdout, "the default: "+tc.want) || tc.want == "" && strings.Contains(check.stdout, "audit.share") {
				t.Errorf("config check: %s", check.stdout)
			}
			s.run(t, path)
			s.until(t, "the pace is settled", func() bool {
				pace := s.status(t).Audit.Pace
				return pace.Limit == tc.limit && pace.Default == tc.want
			})
			if tc.want != "" {
				s.until(t, "the log says it", func() bool { return strings.Contains(s.log.String(), tc.want) })
			}
		})
	}
}
