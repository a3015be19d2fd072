package ident_test

import (
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

func TestIdent(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		ident.Quote("users"):                         `"users"`,
		ident.Quote("public", `say "hi"`):            `"public"."say ""hi"""`,
		ident.Quote("a\x00b"):                        `"ab"`,
		ident.List([]string{"d0", "Order", ""}):      `"d0", "Order", ""`,
		ident.List(nil):                              "",
		ident.Literal("it's"):                        "'it''s'",
		ident.Literal(`a\b`):                         `'a\b'`,
		ident.ParseTable("public.users").SQL():       `"public"."users"`,
		ident.ParseTable("public.a.b").String():      "public.a.b",
		ident.Table{Schema: "s", Name: "T"}.SQL():    `"s"."T"`,
		ident.Table{Schema: "s", Name: "T"}.String(): "s.T",
		ident.Bare("f") + ident.Bare("s.g"):          "fg",
		ident.ParseTable("f").Schema:                 "f",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestParseFunction(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct {
		schema, name string
		ok           bool
	}{
		"f": {"", "f", true}, "s.f": {"s", "f", true}, "": {"", "", false}, ".f": {"", "f", false}, "s.": {"s", "", false}, "a.b.c": {"a", "b.c", false},
	} {
		schema, name, ok := ident.ParseFunction(s)
		if schema != want.schema || name != want.name || ok != want.ok {
			t.Errorf("%q: %q, %q, %t", s, schema, name, ok)
		}
	}
}

func TestParseName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"people": {"people"}, "Public.People": {"public", "people"}, ` "A.b" . c `: {"A.b", "c"}, `a.b.c`: {"a", "b", "c"}, "a,b": {"a,b"},
		"": nil, ".": nil, "a.": nil, "a b": nil, `"a`: nil, `""`: nil, `a."b"c`: nil,
	} {
		if got, ok := ident.ParseName(text); ok != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %t; want %q", text, got, ok, want)
		}
	}
}
