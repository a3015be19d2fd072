package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write schema.json anew")

// TestSchema: schema.json is generated from the types and the example, accepts the example, and refuses unknown keys
// and wrong types.
func TestSchema(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../examples/dpwatch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := schemaOf(reflect.TypeFor[Config](), "", commentsOf(string(example)))
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "dpwatch.yaml"
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(b.Bytes(), Schema()) {
		t.Error("schema.json is not that of the types and the example: go test ./config -run TestSchema -update")
	}
	compiled := compile(t, b.Bytes())
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"the example":            {string(example), true},
		"one value for a list":   {"proxy: {listen: 127.0.0.1:1}", true},
		"a value from elsewhere": {"audit: {workers: '${WORKERS}'}", true},
		"an unknown key":         {"proxy: {lissen: 127.0.0.1:1}", false},
		"a word for a number":    {"audit: {workers: many}", false},
		"a list for a value":     {"log: {level: [info]}", false},
	} {
		var v any
		if err := yaml.Unmarshal([]byte(tc.text), &v); err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(asJSON(t, v)); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, key := range []string{"audit.workers", "ledger.statements", "proxy.tls.mode"} {
		if !bytes.Contains(b.Bytes(), []byte(`"description":"`)) || commentsOf(string(example))[key] == "" {
			t.Errorf("%s has no description", key)
		}
	}
}

// maxKeys bounds what users must know.
const maxKeys = 166

// TestNumberOfKeys counts the leaves of the schema, without the engines, which repeat its sections.
func TestNumberOfKeys(t *testing.T) {
	t.Parallel()
	var leaves func(t reflect.Type) int
	leaves = func(t reflect.Type) (n int) {
		switch _, scalar := reflect.New(t).Interface().(setter); {
		case !scalar && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice):
			return leaves(t.Elem())
		case scalar || t.Kind() != reflect.Struct:
			return 1
		}
		for _, i := range yamlFields(t) {
			n += leaves(t.Field(i).Type)
		}
		return n
	}
	if n := leaves(reflect.TypeFor[Config]()) - leaves(reflect.TypeFor[EngineSections]()); n > maxKeys {
		t.Errorf("%d keys; the limit is %d", n, maxKeys)
	}
}

func compile(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("dpwatch.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("dpwatch.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// asJSON returns v as JSON decodes it.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// schemaOf returns the schema of a type at a path: as decoder.node accepts it, so that one value stands for a list of
// one, and ${...} for any value.
func schemaOf(t reflect.Type, path string, comments map[string]string) map[string]any {
	var s map[string]any
	text := map[string]any{"type": []string{"string", "number"}}
	filled := map[string]any{"type": "string", "pattern": `\$\{`}
	switch _, scalar := reflect.New(t).Interface().(setter); {
	case scalar:
		s = text
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), path, comments)
	case t.Kind() == reflect.Struct:
		properties := map[string]any{}
		for name, i := range yamlFields(t) {
			properties[name] = schemaOf(t.Field(i).Type, join(path, name), comments)
		}
		s = map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case t.Kind() == reflect.Slice:
		item := schemaOf(t.Elem(), path, nil)
		s = map[string]any{"anyOf": []any{item, map[string]any{"type": "array", "items": item}}}
	case t.Kind() == reflect.Bool:
		s = map[string]any{"anyOf": []any{map[string]any{"type": "boolean"}, filled}}
	case t.Kind() == reflect.String:
		s = map[string]any{"type": []string{"string", "number", "boolean"}}
	default:
		s = map[string]any{"anyOf": []any{map[string]any{"type": "number"}, filled}}
	}
	if c := comments[path]; c != "" {
		s["description"] = c
	}
	return s
}

var (
	keyLine  = regexp.MustCompile(`^( *)(?:# )?(?:- \{?)?([a-z_0-9]+):(?: [^#]*)?(?:# (.*))?$`)
	moreLine = regexp.MustCompile(`^ {20,}# (.*)$`)
)

// commentsOf returns the comments of the example by the paths of their keys.
func commentsOf(example string) map[string]string {
	comments, path, indents, last := map[string]string{}, []string{}, []int{}, ""
	for line := range strings.Lines(example) {
		line = strings.TrimRight(line, "\n")
		if m := moreLine.FindStringSubmatch(line); m != nil && last != "" {
			comments[last] += " " + m[1]
			continue
		}
		m := keyLine.FindStringSubmatch(line)
		if m == nil {
			last = ""
			continue
		}
		for len(indents) > 0 && indents[len(indents)-1] >= len(m[1]) {
			indents, path = indents[:len(indents)-1], path[:len(path)-1]
		}
		indents, path = append(indents, len(m[1])), append(path, m[2])
		if last = strings.Join(path, "."); m[3] != "" {
			comments[last] = m[3]
		} else {
			last = ""
		}
	}
	return comments
}
