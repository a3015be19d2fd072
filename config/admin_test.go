package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/config"
)

func TestAdmin(t *testing.T) {
	t.Parallel()
	const tls, token = "tls: {certificate: c, key: k}", "token_file: t"
	for _, tc := range []struct{ admin, want string }{
		{"{listen: 127.0.0.1:9188}", ""},
		{"{listen: [127.0.0.1:9188, '[::1]:9188', unix:/run/dpwatch/admin.sock]}", ""},
		{"{listen: [127.0.0.1:0, 127.0.0.1:0]}", ""},
		{"{listen: 127.0.0.1:9188, " + token + "}", ""},
		{"{listen: 0.0.0.0:9188, " + token + ", " + tls + "}", ""},
		{"{listen: ':9188', " + token + ", " + tls + ", hosts: [Dpwatch.Example., '[2001:DB8::7]', 10.0.0.7]}", ""},
		{"{listen: 0.0.0.0:9188, metrics_only: true}", ""},
		{"{listen: 0.0.0.0:9188, metrics_only: true, " + token + ", " + tls + "}", ""},
		{"[{listen: 127.0.0.1:9188, " + token + "}, {listen: 0.0.0.0:9189, metrics_only: true}]", ""},
		{"{listen: 0.0.0.0:9188}", "admin.listen: other machines can reach 0.0.0.0:9188, and the status shows results of replays: set token_file and tls; or metrics_only: true"},
		{"{listen: [127.0.0.1:9188, ':9189']}", "other machines can reach :9189"},
		{"{listen: 10.0.0.7:9188, " + token + "}", "set token_file and tls"},
		{"{listen: 10.0.0.7:9188, " + tls + "}", "set token_file and tls"},
		{"[{listen: 127.0.0.1:1}, {listen: '[::]:9188'}]", "admin[1].listen: other machines can reach [::]:9188"},
		{"{listen: 0.0.0.0:9188, metrics_only: true, " + token + "}", "in plain text"},
		{"{listen: 127.0.0.1:9188, tls: {certificate: c}}", "give both"},
		{"{listen: unix:/x, " + tls + "}", "admin.tls: applies to TCP only"},
		{"{listen: 127.0.0.1:9188, hosts: ['a:1']}", "without a port"},
		{"{listen: 127.0.0.1:9188, hosts: ['*.example']}", "is not a host"},
		{"{" + token + "}", "admin.listen: missing"},
		{"[{metrics_only: true}]", "admin[0].listen: missing"},
		{"{listen: 127.0.0.1:1, proxy_login: {addresses: 127.0.0.1, header: X-User, users: ['viewer *', 'auditor,operator ann']}}", ""},
		{"{listen: 127.0.0.1:1, proxy_login: {addresses: 127.0.0.1, header: X-User}}", "admin.proxy_login.users: missing"},
		{"[{listen: 127.0.0.1:1, proxy_login: {addresses: 127.0.0.1, header: X-User, users: [owner ann]}}]", `admin[0].proxy_login.users[0]: "owner ann" is not a user with roles`},
		{"{listen: 127.0.0.1:1, proxy_login: {addresses: 127.0.0.1, header: X-User, users: viewer}}", "is not a user with roles"},
		{"{listen: 127.0.0.1:6432}", "admin.listen[0]: 127.0.0.1:6432 is already used by the proxy"},
		{"[{listen: 127.0.0.1:1}, {listen: 127.0.0.1:1}]", "admin[1].listen[0]: 127.0.0.1:1 is already used by another admin listener"},
	} {
		_, err := config.Parse("f.yaml", []byte(minimal+"admin: "+tc.admin+"\n"), env)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.admin, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: got %v, want %q", tc.admin, err, tc.want)
		}
	}
	c, err := config.Parse("f", []byte(minimal+"admin: {listen: 127.0.0.1:1, hosts: [Dpwatch.Example., '[2001:DB8::7]']}\n"), env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]config.Host{"dpwatch.example", "2001:db8::7"}, c.Admin[0].Hosts); diff != "" {
		t.Error(diff)
	}
}

func TestAdminFiles(t *testing.T) {
	t.Parallel()
	for admin, want := range map[string]string{
		"{listen: 127.0.0.1:9188, token_file: /nonexistent/t}":                         "admin.token_file: /nonexistent/t does not exist",
		"{listen: 127.0.0.1:9188, tls: {certificate: /nonexistent/c, key: /nonexist}}": "admin.tls.certificate: /nonexistent/c does not exist",
	} {
		data := []byte(minimal + "admin: " + admin + "\n")
		if _, _, err := config.ParseAndCheck("f", data, env); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", admin, err, want)
		}
		if _, err := config.Parse("f", data, env); err != nil {
			t.Errorf("%s: Parse alone: %v", admin, err)
		}
	}
}

// ParseAdmin needs only its own section: a health probe has no secrets and ignores the other sections.
func TestParseAdmin(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	a, err := config.ParseAdmin("f", []byte("proxy: {lisen: 1}\nshadow: {dsn: '${PW}'}\nadmin: {listen: 127.0.0.1:9188}\n"), none)
	if err != nil || len(a) != 1 {
		t.Errorf("got %+v, %v", a, err)
	}
	for _, text := range []string{"admin: {listen: x}", "admin: [", "- a", "admin: [{}]"} {
		if _, err := config.ParseAdmin("f", []byte(text), none); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

// Another process parses the same configuration without the environment and the files.
func TestResolved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("from a \xff file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(minimal, "privacy: {", "privacy: {catalog: 'host=x password=''${file:"+path+"}'' user=$${x', ", 1)
	want, resolved, err := config.ParseAndCheck("f.yaml", []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	encoded, err := resolved.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.DecodeResolved(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-relay +auditor)\n%s", diff)
	}
	if got.Shadow.DSN != "postgres://u:s3cret@localhost/shadow" || got.Privacy.Catalog != "host=x password='from a \xff file' user=${x" {
		t.Errorf("shadow.dsn %q, privacy.catalog %q", got.Shadow.DSN.Reveal(), got.Privacy.Catalog.Reveal())
	}
	for _, bad := range []string{"", "{", `{"text":"AA=="}`, `{"text":"e30K"}`} {
		if _, err := config.DecodeResolved([]byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
