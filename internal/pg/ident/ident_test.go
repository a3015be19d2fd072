package ident_test

import (
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
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
