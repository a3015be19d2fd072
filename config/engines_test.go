package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/config"
)

// twoEngines is a configuration of two engines, without the end of the second.
const twoEngines = `engines:
  - name: shop
    proxy:
      - {name: a, listen: 127.0.0.1:6432, upstream: 127.0.0.1:5432}
      - {name: c, listen: 127.0.0.1:6434, upstream: 127.0.0.1:5432}
    privacy: {protected: [public.users]}
    shadow: {d0: shop_d0, d1: [shop_d1]}
  - name: bank
    proxy: {name: b, listen: 127.0.0.1:6433, upstream: 127.0.0.1:5433}
    privacy: {protected: [public.accounts], search_path: [bank]}
    shadow: {d0: bank_d0, d1: [bank_d1, bank_d2]}
    claims: {default: {epsilon: 2}}
    audit: {budget: {trials_per_hour: 900}}
shadow: {dsn: postgres://replay@127.0.0.1/shadow, max_rows: 7}
claims: {combine: share}
audit: {budget: {database_seconds_per_hour: 60}, workers: 3}
ledger: {dsn: memory, spool: {dir: /spool}}
`

func TestSeveralEngines(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("f.yaml", []byte(twoEngines), env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"shop", "bank"}, c.EngineNames()); diff != "" {
		t.Fatalf("names (-want +got)\n%s", diff)
	}
	bank, err := c.ForEngine("bank")
	if err != nil {
		t.Fatal(err)
	}
	type view struct {
		Routes, Protected, Path, D1 []string
		Name, DSN, Combine, Spool   string
		MaxRows, Trials, Workers    int
		Seconds, Epsilon            float64
	}
	see := func(c config.Config) view {
		v := view{
			Protected: c.Privacy.Protected, Path: c.Privacy.SearchPath, D1: c.Shadow.D1, Name: c.EngineName(), DSN: c.Shadow.DSN.Reveal(), Combine: c.Claims.Combine,
			Spool: c.Ledger.Spool.Dir, MaxRows: c.Shadow.MaxRows, Trials: c.Audit.Budget.TrialsPerHour, Workers: c.Audit.Workers, Seconds: c.Audit.Budget.DatabaseSeconds,
		}
		for _, r := range c.Proxy.AllRoutes() {
			v.Routes = append(v.Routes, r.Name)
		}
		if d := c.Claims.Default; d != nil {
			v.Epsilon = d.Epsilon
		}
		return v
	}
	const dsn = "postgres://replay@127.0.0.1/shadow"
	want := view{[]string{"b"}, []string{"public.accounts"}, []string{"bank"}, []string{"bank_d1", "bank_d2"}, "bank", dsn, "share", "/spool/bank", 7, 900, 3, 60, 2}
	if diff := cmp.Diff(want, see(bank)); diff != "" {
		t.Errorf("bank (-want +got)\n%s", diff)
	}
	shop, err := c.ForEngine("shop")
	if err != nil {
		t.Fatal(err)
	}
	want = view{[]string{"a", "c"}, []string{"public.users"}, []string{"public"}, []string{"shop_d1"}, "shop", dsn, "share", "/spool/shop", 7, 0, 3, 60, 0}
	if diff := cmp.Diff(want, see(shop)); diff != "" {
		t.Errorf("shop (-want +got)\n%s", diff)
	}
	for name, text := range map[string]string{"": "several engines: choose one of shop, bank", "x": `no engine "x": its engines are shop, bank`} {
		if _, err := c.ForEngine(name); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("ForEngine(%q): %v", name, err)
		}
	}
	c.SetWorkers(9)
	if bank, _ = c.ForEngine("bank"); bank.Audit.Workers != 9 {
		t.Errorf("SetWorkers: %d", bank.Audit.Workers)
	}
}

// An address for clients makes the sections of the top level an engine.
func TestEngineOfTheTopLevel(t *testing.T) {
	t.Parallel()
	text := twoEngines + "privacy: {database: x, protected: [public.tx]}\nproxy: {listen: 127.0.0.1:6435, upstream: 127.0.0.1:5432}\n"
	c, err := config.Parse("f.yaml", []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x@127.0.0.1:5432", "shop", "bank"}, c.EngineNames()); diff != "" {
		t.Errorf("names (-want +got)\n%s", diff)
	}
	top, err := c.ForEngine("x@127.0.0.1:5432")
	if err != nil || len(top.Engines) > 0 || len(top.Proxy.AllRoutes()) != 1 || top.Privacy.Protected[0] != "public.tx" || top.Shadow.D0 != "d0" {
		t.Errorf("top level: %v %+v", err, top)
	}
}

// dpwatch makes the copies of each engine: the default of shadow.d1 follows from the units of that engine.
func TestEnginesWithNeighbours(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer(", d1: [bank_d1, bank_d2]}", "}\n    neighbours: {source: postgres://c@127.0.0.1/bank, choose: [{rule: random, k: 3}]}",
		"search_path: [bank]", "unit: {table: public.accounts, key: id}").Replace(twoEngines)
	c, err := config.Parse("f.yaml", []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"d1_1", "d1_2", "d1_3"}, c.Engines[1].Shadow.D1); diff != "" {
		t.Errorf("d1 (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"shop_d1"}, c.Engines[0].Shadow.D1); diff != "" {
		t.Errorf("d1 of the other engine (-want +got)\n%s", diff)
	}
}

func TestEngineErrors(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct{ from, to, want string }{
		"same name":             {"name: bank\n", "name: shop\n", `f.yaml:8: engines[1].name: "shop" is also the name of another engine`},
		"no name":               {"- name: bank\n    proxy", "- proxy", "f.yaml:8: engines[1].name: missing"},
		"a name for no file":    {"name: bank\n", "name: ../x\n", "f.yaml:8: engines[1].name: \"../x\": must be"},
		"no route":              {"    proxy: {name: b, listen: 127.0.0.1:6433, upstream: 127.0.0.1:5433}\n", "", "f.yaml:8: engines[1].proxy: missing: the address for clients"},
		"no upstream":           {", upstream: 127.0.0.1:5433}", "}", "f.yaml:9: engines[1].proxy.upstream: missing"},
		"no second upstream":    {"6434, upstream: 127.0.0.1:5432}", "6434}", "f.yaml:5: engines[0].proxy[1].upstream: missing"},
		"routes on one address": {"listen: 127.0.0.1:6433", "listen: 127.0.0.1:6434", "f.yaml:9: engines[1].proxy.listen[0]: 127.0.0.1:6434 also belongs to another route"},
		"routes of one name":    {"{name: b", "{name: a", "f.yaml:9: engines[1].proxy.name: \"a\" is also the name of another route"},
		"admin on a route":      {"ledger: {", "admin: {listen: 127.0.0.1:6433}\nledger: {", "admin.listen[0]: 127.0.0.1:6433 is already used by the proxy"},
		"same D0":               {"d0: bank_d0", "d0: shop_d0", "f.yaml:11: engines[1].shadow.d0: engines shop and bank have the same copy in one shadow database, schema shop_d0"},
		"a D1 is a D0":          {"d1: [bank_d1, bank_d2]", "d1: [bank_d1, shop_d0]", "f.yaml:11: engines[1].shadow.d1[1]: engines shop and bank have the same copy"},
		"fault of an engine":    {"{epsilon: 2}", "{epsilon: -2}", "f.yaml:12: engines[1].claims.default.epsilon: must be a number from 0 to 1000"},
		"inherited fault":       {"combine: share", "combine: both", "f.yaml:15: claims.combine: must be add"},
		"missing in an engine":  {"    privacy: {protected: [public.users]}\n", "", "f.yaml:2: engines[0].privacy.protected: missing"},
		"missing everywhere":    {"dsn: postgres://replay@127.0.0.1/shadow, ", "", "f.yaml:11: engines[1].shadow.dsn: missing"},
		"unknown key":           {"    claims: {default", "    claim: {default", `f.yaml:12: engines[1].claim: unknown key: did you mean "claims"?`},
		"a section of all":      {"    claims: {default: {epsilon: 2}}", "    ledger: {dsn: memory}", "f.yaml:12: engines[1].ledger: unknown key"},
		"no protected tables of the top level": {
			"ledger: {", "proxy: {listen: 127.0.0.1:1, upstream: 127.0.0.1:2}\nledger: {", "f.yaml:1: privacy.protected: missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(twoEngines, x.from, x.to, 1)
			if text == twoEngines {
				t.Fatal("the case changes nothing")
			}
			_, err := config.Parse("f.yaml", []byte(text), env)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Fatalf("%v\nwant %s", err, x.want)
			}
			if n := strings.Count(err.Error(), x.want); n != 1 {
				t.Errorf("reported %d times:\n%v", n, err)
			}
		})
	}
}

// TestControlSchema: engines whose copies have different schemas keep the records of their copies in different schemas,
// and the top level's default is that of earlier versions.
func TestControlSchema(t *testing.T) {
	t.Parallel()
	single, err := config.Parse("f.yaml", []byte(minimal), env)
	if err != nil || single.ControlSchema() != "dpwatch" {
		t.Errorf("%s, %v", single.ControlSchema(), err)
	}
	c, err := config.Parse("f.yaml", []byte(twoEngines), env)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range c.AllEngines() {
		got = append(got, one.Shadow.D0+" "+one.ControlSchema())
	}
	if diff := cmp.Diff([]string{"shop_d0 dpwatch_shop_d0", "bank_d0 dpwatch_bank_d0"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The auditor process of an engine gets its configuration.
func TestResolvedForEngine(t *testing.T) {
	t.Parallel()
	text := strings.Replace(twoEngines, "dsn: postgres://replay@127.0.0.1/shadow,", `dsn: "postgres://replay:${PW}@127.0.0.1/shadow",`, 1)
	c, resolved, err := config.ParseAndCheck("f.yaml", []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	resolved.SetWorkers(5)
	encoded, err := resolved.ForEngine("bank").Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.DecodeResolved(encoded)
	if err != nil {
		t.Fatal(err)
	}
	c.SetWorkers(5)
	want, err := c.ForEngine("bank")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestUsesTLS: TLS of any route of any engine counts.
func TestUsesTLS(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{twoEngines: false, strings.Replace(twoEngines, "6434, upstream: 127.0.0.1:5432", "6434, upstream: 127.0.0.1:5432, upstream_tls: {mode: require}", 1): true} {
		c, err := config.Parse("f.yaml", []byte(text), env)
		if err != nil || c.UsesTLS() != want {
			t.Errorf("%t, %v; want %t", c.UsesTLS(), err, want)
		}
	}
}
