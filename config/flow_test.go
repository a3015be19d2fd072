package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/config"
)

// Addresses in lists and mappings on one line need no quotation marks wherever YAML allows it.
func TestFlowForms(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ proxy, want string }{
		{`{listen: [127.0.0.1:6432], upstream: 127.0.0.1:5432}`, "[127.0.0.1:6432] 127.0.0.1:5432 []"},
		{`{listen: [127.0.0.1:6432, localhost:6433 , unix:/run/x], upstream: unix:/run/y}`, "[127.0.0.1:6432 localhost:6433 unix:/run/x] unix:/run/y []"},
		{`{upstream: db:5432, listen: [":6432"]}`, "[:6432] db:5432 []"},
		{`{listen: ["[::1]:6432"], upstream: "[::1]:5432"}`, "[[::1]:6432] [::1]:5432 []"},
		{`{listen: [a-b.c:1,d:2], upstream: db:5432, proxy_protocol: [fd00::/8, 10.0.0.0/8]}`, "[a-b.c:1 d:2] db:5432 [fd00::/8 10.0.0.0/8]"},
		{"{listen: [\n  db1:1,\n  db2:2\n ], upstream: db:5432}", "[db1:1 db2:2] db:5432 []"},
		{`{listen: ["${HOST}:6432"], upstream: db:5432}`, "[v:6432] db:5432 []"},
	} {
		text := "proxy: " + tc.proxy + "\nshadow: {dsn: 'host=x'}\nprivacy: {protected: [public.t]}\n"
		c, err := config.Parse("f", []byte(text), anyValue)
		if err != nil {
			t.Errorf("%s: %v", tc.proxy, err)
			continue
		}
		if got := fmt.Sprint(c.Proxy.Listen, c.Proxy.Upstream, c.Proxy.ProxyProtocol); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.proxy, got, tc.want)
		}
	}
	c, err := config.Parse("f", []byte(strings.TrimSpace(minimal)+"\naudit: {windows: [22:00-06:00 Europe/Berlin, 08:00-09:00]}\n"), env)
	if err != nil || fmt.Sprint(c.Audit.Windows) != "[22:00-06:00 Europe/Berlin 08:00-09:00 UTC]" {
		t.Errorf("windows %v, %v", c.Audit.Windows, err)
	}
}

// Values that YAML cannot parse, or parses differently, are rejected with advice to quote them.
func TestFlowAdvice(t *testing.T) {
	t.Parallel()
	const quote = "quotation marks"
	for _, proxy := range []string{
		`{listen: [localhost: 6432], upstream: db:1}`,
		`{listen: [[::1]:6432], upstream: db:1}`,
		`{listen: db:1, upstream: [::1]:5432}`,
		`{listen: [:6432], upstream: db:1}`,
		`{listen: db:1, upstream: [2001:db8::7]:5432}`,
		"\n  listen: db:1\n  upstream: [::1]:5432",
		`{listen: [${HOST}], upstream: db:1}`,
		`{listen: db:1, upstream: ${HOST}}`,
	} {
		_, err := config.Parse("f", []byte("proxy: "+proxy+"\n"), anyValue)
		if err == nil || !strings.Contains(err.Error(), quote) {
			t.Errorf("%s: got %v, want advice on %s", proxy, err, quote)
		}
	}
	for _, proxy := range []string{`{listen: {a:6}}`, `{listen: {a: 6}}`, `{upstream: [a, b]}`, `{listen: [a:6: 7]}`, `{listen: ["a":6]}`, `{listen: [{a:6}]}`} {
		if _, err := config.Parse("f", []byte("proxy: "+proxy+"\n"), env); err == nil || !strings.Contains(err.Error(), "proxy") && !strings.Contains(err.Error(), "invalid YAML") {
			t.Errorf("%s: got %v, want an error", proxy, err)
		}
	}
}
