package ident_test

import (
	"reflect"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

func TestParseElement(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ident.Element{
		"user_id":                  {Column: "user_id"},
		"members[]":                {Column: "members", Each: true},
		"data->actor->id":          {Column: "data", Keys: []string{"actor", "id"}},
		"data->>'user id'":         {Column: "data", Keys: []string{"user id"}},
		"data -> likes[] -> user ": {Column: "data", Keys: []string{"likes", "", "user"}},
		"data[]->user":             {Column: "data", Keys: []string{"", "user"}},
	} {
		if got, ok := ident.ParseElement(text); !ok || !reflect.DeepEqual(got, want) || got.Plain() != (text == "user_id") {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "[]", "->id", "data->", "data->->id"} {
		if _, ok := ident.ParseElement(text); ok {
			t.Errorf("%q is taken for an element", text)
		}
	}
}
