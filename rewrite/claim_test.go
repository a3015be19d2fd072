package rewrite_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// claimOf analyses one query under the golden options with other claim rules.
func claimOf(t *testing.T, rules rewrite.ClaimRules, q capture.Query) (*rewrite.Plan, error) {
	t.Helper()
	o := options()
	rules.Signatures = append(rules.Signatures, o.Claims.Signatures...)
	o.Claims = rules
	q.Database = "shop"
	return newRewriter(t, o).Analyze(q)
}

func reasonOf(t *testing.T, err error) rewrite.Reason {
	t.Helper()
	var refusal *rewrite.UnsupportedError
	if !errors.As(err, &refusal) {
		t.Fatalf("error of type %T: %v", err, err)
	}
	return refusal.Reason
}

func TestClaimSources(t *testing.T) {
	t.Parallel()
	rule := rewrite.Rule{Name: "shop", Epsilon: 1, Delta: 1e-5}
	byDefault := &rewrite.Claim{Epsilon: 2, Delta: 1e-4}
	comment := func(eps string) string { return " /*dp_epsilon='" + eps + "'*/" }
	const plain, call = "SELECT count(*) FROM users", "SELECT anon_count(id, 0.5) FROM users"
	set := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		rules    rewrite.ClaimRules
		sql      string
		settings map[string]string
		want     *rewrite.Claim
		ignored  []rewrite.Claim
	}{
		"none":    {sql: plain},
		"default": {rules: rewrite.ClaimRules{Default: byDefault}, sql: plain, want: &rewrite.Claim{Epsilon: 2, Delta: 1e-4, Source: "default", Rule: ""}},
		"rule before default": {
			rules: rewrite.ClaimRules{Default: byDefault, Rules: []rewrite.Rule{rule}}, sql: plain, want: &rewrite.Claim{Epsilon: 1, Delta: 1e-5, Source: "rule", Rule: "shop"},
		},
		"rule without a name": {
			rules: rewrite.ClaimRules{Rules: []rewrite.Rule{{User: "x", Epsilon: 3}, {Epsilon: 1}}}, sql: plain,
			want: &rewrite.Claim{Epsilon: 1, Delta: 0, Source: "rule", Rule: "claims.rules[1]"},
		},
		"trusted comment before a trusted setting": {
			rules: rewrite.ClaimRules{TrustComment: true, TrustSetting: true, Default: byDefault}, sql: plain + comment("7"),
			settings: set("dp.epsilon", "5"), want: &rewrite.Claim{Epsilon: 7, Delta: 1e-4, Source: "comment", Rule: ""},
		},
		"rules that disagree: the first": {
			rules: rewrite.ClaimRules{Rules: []rewrite.Rule{rule, {Name: "later", Epsilon: 0.1}}}, sql: plain, want: &rewrite.Claim{Epsilon: 1, Delta: 1e-5, Source: "rule", Rule: "shop"},
		},
		"setting alone": {sql: plain, settings: set("dp.epsilon", "0.25", "dp.delta", "1e-6"), want: &rewrite.Claim{Epsilon: 0.25, Delta: 1e-6, Source: "setting", Rule: "dp.epsilon"}},
		"setting of another name": {
			rules: rewrite.ClaimRules{EpsilonSetting: "acme.eps", DeltaSetting: "-"}, sql: plain,
			settings: set("dp.epsilon", "9", "acme.eps", "3", "dp.delta", "0.1"), want: &rewrite.Claim{Epsilon: 3, Delta: 0, Source: "setting", Rule: "acme.eps"},
		},
		"settings switched off": {rules: rewrite.ClaimRules{EpsilonSetting: "-", DeltaSetting: "-"}, sql: plain, settings: set("dp.epsilon", "9")},
		"setting lowers a rule": {
			rules: rewrite.ClaimRules{Rules: []rewrite.Rule{rule}}, sql: plain, settings: set("dp.epsilon", "0.5"),
			want: &rewrite.Claim{Epsilon: 0.5, Delta: 1e-5, Source: "setting", Rule: "dp.epsilon"},
		},
		"setting may not raise a rule": {
			rules: rewrite.ClaimRules{Rules: []rewrite.Rule{rule}}, sql: plain, settings: set("dp.epsilon", "5"),
			want: &rewrite.Claim{Epsilon: 1, Delta: 1e-5, Source: "rule", Rule: "shop"}, ignored: []rewrite.Claim{{Epsilon: 5, Delta: 1e-5, Source: "setting", Rule: "dp.epsilon"}},
		},
		"trusted setting raises a rule": {
			rules: rewrite.ClaimRules{Rules: []rewrite.Rule{rule}, TrustSetting: true}, sql: plain, settings: set("dp.epsilon", "5"),
			want: &rewrite.Claim{Epsilon: 5, Delta: 1e-5, Source: "setting", Rule: "dp.epsilon"},
		},
		"setting's delta may not raise the rule's": {
			rules: rewrite.ClaimRules{Rules: []rewrite.Rule{rule}}, sql: plain, settings: set("dp.delta", "0.1"),
			want: &rewrite.Claim{Epsilon: 1, Delta: 1e-5, Source: "rule", Rule: "shop"},
		},
		"argument before setting and rule": {
			rules: rewrite.ClaimRules{Rules: []rewrite.Rule{rule}}, sql: call, settings: set("dp.epsilon", "0.1"),
			want: &rewrite.Claim{Epsilon: 0.5, Delta: 1e-5, Source: "argument", Rule: "anon_count"},
		},
		"argument takes the setting's delta": {
			sql: call, settings: set("dp.delta", "1e-7"), want: &rewrite.Claim{Epsilon: 0.5, Delta: 1e-7, Source: "argument", Rule: "anon_count"},
		},
		"comment alone":              {sql: plain + comment("0.5"), want: &rewrite.Claim{Epsilon: 0.5, Delta: 0, Source: "comment", Rule: ""}},
		"comment lowers an argument": {sql: call + comment("0.1"), want: &rewrite.Claim{Epsilon: 0.1, Delta: 0, Source: "comment", Rule: ""}},
		"comment may not raise an argument": {
			sql: call + comment("0.6"), want: &rewrite.Claim{Epsilon: 0.5, Delta: 0, Source: "argument", Rule: "anon_count"}, ignored: []rewrite.Claim{{Epsilon: 0.6, Delta: 0, Source: "comment", Rule: ""}},
		},
		"trusted comment raises an argument": {
			rules: rewrite.ClaimRules{TrustComment: true}, sql: call + comment("0.6"), want: &rewrite.Claim{Epsilon: 0.6, Delta: 0, Source: "comment", Rule: ""},
		},
		"comment may not raise the default's delta": {
			rules: rewrite.ClaimRules{Default: byDefault}, sql: plain + " /*dp_delta='0.5',dp_epsilon='1'*/",
			want: &rewrite.Claim{Epsilon: 2, Delta: 1e-4, Source: "default", Rule: ""}, ignored: []rewrite.Claim{{Epsilon: 1, Delta: 0.5, Source: "comment", Rule: ""}},
		},
		"trusted comment spares a non-constant argument": {
			rules: rewrite.ClaimRules{TrustComment: true}, sql: "SELECT anon_count(id, income) FROM users" + comment("3"), want: &rewrite.Claim{Epsilon: 3, Delta: 0, Source: "comment", Rule: ""},
		},
		"comment among others": {
			sql: "/*+ hint */ " + plain + " -- dp_epsilon='9'\n /*a='b%20c',dp_delta='1e%2D6',dp_epsilon='0.5',t='it\\'s'*/", want: &rewrite.Claim{Epsilon: 0.5, Delta: 1e-6, Source: "comment", Rule: ""},
		},
		"prose about the claim is no claim": {sql: plain + " /* mind dp_epsilon here */"},
		"claim in a string is no comment":   {sql: plain + " WHERE name = '/*dp_epsilon=''5''*/'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := claimOf(t, c.rules, capture.Query{SQL: c.sql, Settings: c.settings})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, plan.Claim); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.ignored, plan.Ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaimArguments(t *testing.T) {
	t.Parallel()
	text := func(s string) []capture.Param { return []capture.Param{{Value: []byte(s)}} }
	bin := func(oid uint32, b []byte) []capture.Param {
		return []capture.Param{{OID: oid, Format: 1, Value: b}}
	}
	float8 := func(v float64) []byte { return binary.BigEndian.AppendUint64(nil, math.Float64bits(v)) }
	// SELECT numeric_send(x) on PostgreSQL 15.18 for 0.5, 12345.678 and -1.
	numeric := map[string][]byte{}
	for k, h := range map[string]string{"0.5": "0001ffff000000011388", "12345.678": "0003000100000003000109291a7c", "-1": "00010000400000000001"} {
		numeric[k], _ = hex.DecodeString(h)
	}
	for name, c := range map[string]struct {
		share  bool
		call   string
		params []capture.Param
		eps    float64
		delta  float64
		reason rewrite.Reason // "" = a claim
	}{
		"literal":                       {call: "anon_count(id, 0.5)", eps: 0.5},
		"integer":                       {call: "anon_count(id, 2)", eps: 2},
		"zero":                          {call: "anon_count(id, 0)", eps: 0},
		"exponent":                      {call: "anon_count(id, 5e-1)", eps: 0.5},
		"cast":                          {call: "anon_count(id, 0.5::float8)", eps: 0.5},
		"cast, prefix form":             {call: "anon_count(id, float8 '0.5')", eps: 0.5},
		"cast, long form":               {call: "anon_count(id, CAST('0.5' AS double precision))", eps: 0.5},
		"cast of a cast":                {call: "anon_count(id, ('0.5'::text)::numeric)", eps: 0.5},
		"plain string":                  {call: "anon_count(id, ' 0.5 ')", eps: 0.5},
		"plus sign":                     {call: "anon_count(id, +0.5)", eps: 0.5},
		"two minus signs":               {call: "anon_count(id, - -0.5)", eps: 0.5},
		"parentheses":                   {call: "anon_count(id, ((0.5)))", eps: 0.5},
		"real is rounded":               {call: "anon_count(id, 0.1::real)", eps: float64(float32(0.1))},
		"whole number to int":           {call: "anon_count(id, 2.0::int)", eps: 2},
		"position from the start":       {call: "dp.noisy(income, 0.5, 1e-6)", eps: 0.5, delta: 1e-6},
		"named":                         {call: "dp.noisy(income, delta => 1e-6, epsilon => 0.5)", eps: 0.5, delta: 1e-6},
		"two calls add":                 {call: "anon_count(id, 0.5), anon_sum(income, 0, 10, 0.25)", eps: 0.75},
		"two calls share":               {share: true, call: "anon_count(id, 0.5), anon_sum(income, 0, 10, 0.25)", eps: 0.5},
		"nested calls add":              {call: "dp.noisy(anon_count(id, 0.5), 0.5, 1e-6)", eps: 1, delta: 1e-6},
		"call in a sub-select":          {call: "(SELECT anon_count(id, 0.5) FROM transactions), anon_count(id, 1)", eps: 1.5},
		"text parameter":                {call: "anon_count(id, $1)", params: text("0.5"), eps: 0.5},
		"text parameter with a cast":    {call: "anon_count(id, $1::float8)", params: text("5e-1"), eps: 0.5},
		"binary float8":                 {call: "anon_count(id, $1)", params: bin(701, float8(0.5)), eps: 0.5},
		"binary float4":                 {call: "anon_count(id, $1)", params: bin(700, binary.BigEndian.AppendUint32(nil, math.Float32bits(0.5))), eps: 0.5},
		"binary int2":                   {call: "anon_count(id, $1)", params: bin(21, []byte{0, 2}), eps: 2},
		"binary int4":                   {call: "anon_count(id, $1)", params: bin(23, []byte{0, 0, 0, 2}), eps: 2},
		"binary int8":                   {call: "anon_count(id, $1)", params: bin(20, []byte{0, 0, 0, 0, 0, 0, 0, 2}), eps: 2},
		"binary text":                   {call: "anon_count(id, $1)", params: bin(25, []byte("0.5")), eps: 0.5},
		"binary numeric":                {call: "anon_count(id, $1)", params: bin(1700, numeric["0.5"]), eps: 0.5},
		"binary, type inferred, float8": {call: "anon_count(id, $1)", params: bin(0, float8(0.5)), eps: 0.5},
		"binary, type inferred, int8":   {call: "anon_count(id, $1)", params: bin(0, []byte{0, 0, 0, 0, 0, 0, 0, 3}), eps: 3},
		"binary, type inferred, numeric": {
			call: "anon_count(id, $1)", params: bin(0, numeric["0.5"]), eps: 0.5,
		},

		"negative":                    {call: "anon_count(id, -0.5)", reason: reasons.BadClaim},
		"NaN":                         {call: "anon_count(id, 'NaN')", reason: reasons.BadClaim},
		"infinite":                    {call: "anon_count(id, 'Infinity'::float8)", reason: reasons.BadClaim},
		"overflow":                    {call: "anon_count(id, 1e999)", reason: reasons.BadClaim},
		"absurd":                      {call: "anon_count(id, 1000.5)", reason: reasons.BadClaim},
		"absurd only together":        {call: "anon_count(id, 600), anon_count(id, 600)", reason: reasons.BadClaim},
		"null":                        {call: "anon_count(id, NULL)", reason: reasons.BadClaim},
		"null parameter":              {call: "anon_count(id, $1)", params: []capture.Param{{Null: true}}, reason: reasons.BadClaim},
		"not a number":                {call: "anon_count(id, 'much')", reason: reasons.BadClaim},
		"hexadecimal string":          {call: "anon_count(id, '0x1p-1')", reason: reasons.BadClaim},
		"boolean":                     {call: "anon_count(id, true)", reason: reasons.BadClaim},
		"column":                      {call: "anon_count(id, income)", reason: reasons.BadClaim},
		"arithmetic":                  {call: "anon_count(id, 1 / 2)", reason: reasons.BadClaim},
		"cast that rounds":            {call: "anon_count(id, 0.5::int)", reason: reasons.BadClaim},
		"cast to a user's type":       {call: "anon_count(id, 5::app.float8)", reason: reasons.BadClaim},
		"cast with a scale":           {call: "anon_count(id, 0.55::numeric(2, 1))", reason: reasons.BadClaim},
		"delta out of range":          {call: "dp.noisy(income, 0.5, 1)", reason: reasons.BadClaim},
		"named, position from end":    {call: "anon_count(id, eps => 0.5)", reason: reasons.BadClaim},
		"variadic":                    {call: "anon_count(id, VARIADIC ARRAY[0.5])", reason: reasons.BadClaim},
		"some calls without epsilon":  {call: "anon_count(id, 0.5), dp.noisy(income)", reason: reasons.BadClaim},
		"binary of a wrong length":    {call: "anon_count(id, $1)", params: bin(701, []byte{1}), reason: reasons.BadClaim},
		"binary of a date":            {call: "anon_count(id, $1)", params: bin(1082, []byte{0, 0, 0, 1}), reason: reasons.BadClaim},
		"binary numeric, negative":    {call: "anon_count(id, $1)", params: bin(1700, numeric["-1"]), reason: reasons.BadClaim},
		"binary numeric, large":       {call: "anon_count(id, $1)", params: bin(1700, numeric["12345.678"]), reason: reasons.BadClaim},
		"binary numeric, cut":         {call: "anon_count(id, $1)", params: bin(1700, numeric["0.5"][:9]), reason: reasons.BadClaim},
		"binary, type inferred, tiny": {call: "anon_count(id, $1)", params: bin(0, float8(1e-40)), reason: reasons.BadClaim},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := rewrite.ClaimRules{}
			if c.share {
				rules.Combine = "share"
			}
			plan, err := claimOf(t, rules, capture.Query{SQL: "SELECT " + c.call + " FROM users", Params: c.params})
			if c.reason != "" {
				if err == nil {
					t.Fatalf("claim %+v, want a refusal", plan.Claim)
				}
				if got := reasonOf(t, err); got != c.reason {
					t.Errorf("refused as %s, want %s", got, c.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if plan.Claim == nil || plan.Claim.Source != "argument" ||
				plan.Claim.Epsilon != c.eps || plan.Claim.Delta != c.delta {
				t.Errorf("claim %+v, want epsilon %g, delta %g by argument", plan.Claim, c.eps, c.delta)
			}
		})
	}
}

// TestSettingPerCall: without epsilon arguments each call spends the setting's epsilon.
func TestSettingPerCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		combine string
		want    float64
	}{"add": {"add", 1.5}, "share": {"share", 0.5}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := rewrite.ClaimRules{Combine: c.combine, Signatures: []rewrite.Signature{{Function: "dp_count"}, {Function: "dp_sum"}}}
			plan, err := claimOf(t, rules, capture.Query{
				SQL: "SELECT dp_count(id), dp_sum(id), dp_sum(income) FROM users", Settings: map[string]string{"dp.epsilon": "0.5"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Claim.Epsilon != c.want || plan.DPCalls != 3 {
				t.Errorf("epsilon %g from %d calls, want %g from 3", plan.Claim.Epsilon, plan.DPCalls, c.want)
			}
		})
	}
}

func TestRuleConditions(t *testing.T) {
	t.Parallel()
	q := capture.Query{
		SQL: "SELECT sum(spent) FROM transactions WHERE store_id = 7", User: "alice", Database: "shop", ApplicationName: "dash",
	}
	group := func() string {
		plan, err := newRewriter(t, options()).Analyze(q)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Group
	}()
	for name, c := range map[string]struct {
		rule  rewrite.Rule
		match bool
	}{
		"no condition":        {rewrite.Rule{}, true},
		"user":                {rewrite.Rule{User: "alice"}, true},
		"other user":          {rewrite.Rule{User: "bob"}, false},
		"database":            {rewrite.Rule{Database: "shop"}, true},
		"other database":      {rewrite.Rule{Database: "mall"}, false},
		"application":         {rewrite.Rule{ApplicationName: "dash"}, true},
		"other application":   {rewrite.Rule{ApplicationName: "psql"}, false},
		"table":               {rewrite.Rule{Table: rewrite.Table{Schema: "public", Name: "transactions"}}, true},
		"other table":         {rewrite.Rule{Table: rewrite.Table{Schema: "public", Name: "users"}}, false},
		"fingerprint":         {rewrite.Rule{Fingerprint: group}, true},
		"other fingerprint":   {rewrite.Rule{Fingerprint: "0123"}, false},
		"pattern":             {rewrite.Rule{Pattern: `^SELECT sum\(`}, true},
		"pattern on literals": {rewrite.Rule{Pattern: `store_id = 7`}, false},
		"all must hold":       {rewrite.Rule{User: "alice", Database: "mall"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			c.rule.Name, c.rule.Epsilon = "r", 1
			o.Claims.Rules = []rewrite.Rule{c.rule}
			plan, err := newRewriter(t, o).Analyze(q)
			if err != nil {
				t.Fatal(err)
			}
			if got := plan.Claim != nil; got != c.match {
				t.Errorf("matches: %t, want %t", got, c.match)
			}
		})
	}
}

// TestBadClaims: a client's claim in a comment or a setting is checked, and never quoted.
func TestBadClaims(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for name, c := range map[string]struct {
		sql      string
		settings map[string]string
		reason   rewrite.Reason
	}{
		"comment, not a number":       {sql: "/*dp_epsilon='" + secret + "'*/", reason: reasons.BadClaim},
		"comment, negative":           {sql: "/*dp_epsilon='-1'*/", reason: reasons.BadClaim},
		"comment, delta alone":        {sql: "/*dp_delta='1e-6'*/", reason: reasons.BadClaim},
		"comment, delta 1":            {sql: "/*dp_delta='1',dp_epsilon='1'*/", reason: reasons.BadClaim},
		"comment, unquoted":           {sql: "/*dp_epsilon=1*/", reason: reasons.BadClaim},
		"comment, open quote":         {sql: "/*dp_epsilon='1*/", reason: reasons.BadClaim},
		"comment, bad escape":         {sql: "/*dp_epsilon='1%zz'*/", reason: reasons.BadClaim},
		"comments that disagree":      {sql: "/*dp_epsilon='1'*/ /*dp_epsilon='2'*/", reason: reasons.BadClaim},
		"setting, not a number":       {settings: map[string]string{"dp.epsilon": secret}, reason: reasons.BadClaim},
		"setting, absurd":             {settings: map[string]string{"dp.epsilon": "1e4"}, reason: reasons.BadClaim},
		"setting, delta not a number": {settings: map[string]string{"dp.epsilon": "1", "dp.delta": secret}, reason: reasons.BadClaim},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := claimOf(t, rewrite.ClaimRules{}, capture.Query{SQL: "SELECT count(*) FROM users " + c.sql, Settings: c.settings})
			if err == nil {
				t.Fatalf("claim %+v, want a refusal", plan.Claim)
			}
			if got := reasonOf(t, err); got != c.reason {
				t.Errorf("refused as %s, want %s", got, c.reason)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error quotes the query: %v", err)
			}
		})
	}
	t.Run("uncertain settings", func(t *testing.T) {
		t.Parallel()
		_, err := claimOf(t, rewrite.ClaimRules{}, capture.Query{
			SQL: "SELECT count(*) FROM public.users", Settings: map[string]string{"dp.epsilon": "1"}, Doubt: capture.AnySetting(),
		})
		if got := reasonOf(t, err); got != reasons.SettingsUncertain {
			t.Errorf("refused as %s, want %s", got, reasons.SettingsUncertain)
		}
	})
}
