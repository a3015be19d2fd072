package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/dpwatch/dpwatch/internal/spelling"
)

// decoder decodes a YAML tree into a struct and collects all errors; the library's strict mode stops at the first.
type decoder struct {
	*faults
	lookUp func(name string) (string, error) // resolves ${name}
	tuning string                            // the value of TuningVariable
	files  bool                              // check the files that the configuration names
	top    *Config
}

// Parse returns the configuration in data, with defaults for missing keys. file is its name in errors; getenv resolves
// ${NAME}. The error is of type Errors.
func Parse(file string, data []byte, getenv func(string) string) (Config, error) {
	return newDecoder(file, lookUpIn(getenv), getenv(TuningVariable)).parse(data)
}

// ParseAndCheck is Parse with additional checks: the files that the configuration names (certificates, keys, tokens)
// must exist and match. Resolved carries everything that another process needs to parse the same configuration without
// the environment and the files.
func ParseAndCheck(file string, data []byte, getenv func(string) string) (Config, Resolved, error) {
	r := Resolved{file: file, text: data, values: map[string]Secret{}, state: stateDirectory(getenv), tuning: getenv(TuningVariable)}
	d := newDecoder(file, r.record(lookUpIn(getenv)), r.tuning)
	d.files = true
	c, err := d.parse(data)
	c.keepSpool(r.state, file)
	return c, r, err
}

// ParseAdmin returns the listeners of the section admin of a configuration. It ignores errors in other sections, such
// as an unset ${NAME}.
func ParseAdmin(file string, data []byte, getenv func(string) string) ([]AdminListener, error) {
	c, err := Parse(file, data, getenv)
	var all, own Errors
	if !errors.As(err, &all) {
		return c.Admin, err
	}
	for _, f := range all {
		if f.Path == "" || f.Path == "admin" || strings.HasPrefix(f.Path, "admin.") || strings.HasPrefix(f.Path, "admin[") {
			own = append(own, f)
		}
	}
	if len(own) > 0 {
		return c.Admin, own
	}
	return c.Admin, nil
}

func newDecoder(file string, lookUp func(string) (string, error), tuning string) *decoder {
	return &decoder{faults: &faults{file: file, lines: map[string]int{}}, lookUp: lookUp, tuning: tuning}
}

func (d *decoder) parse(data []byte) (c Config, err error) {
	defer func() { // the YAML library may panic on hostile files
		if r := recover(); r != nil {
			err = Errors{{File: d.file, Text: fmt.Sprintf("invalid YAML: the parser failed (%v)", r)}}
		}
	}()
	c = Default()
	d.top = &c
	if err := c.Tuning.set(d.tuning); err != nil {
		return c, Errors{{File: d.file, Text: err.Error()}}
	}
	tree, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return c, Errors{syntaxError(d.file, data, err)}
	}
	switch len(tree.Docs) {
	case 0:
	case 1:
		if body := tree.Docs[0].Body; body != nil && body.Type() != ast.NullType {
			d.node(body, reflect.ValueOf(&c).Elem(), "")
		}
	default:
		return c, Errors{{File: d.file, Line: tree.Docs[1].GetToken().Position.Line, Text: fmt.Sprintf("the file holds %d YAML documents: keep one", len(tree.Docs))}}
	}
	d.validate(&c)
	if len(d.errors) > 0 {
		return c, d.errors.sorted()
	}
	return c, nil
}

// setter is implemented by the scalar types of this package.
type setter interface{ set(string) error }

func (d *decoder) node(n ast.Node, v reflect.Value, path string) {
	d.lines[path] = n.GetToken().Position.Line
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.errorf(n.GetToken(), path, "YAML anchors, aliases and tags are not supported: write the value itself")
		return
	case *ast.NullNode:
		d.errorf(n.GetToken(), path, "has no value: give one or remove the key")
		return
	}
	if s, ok := v.Addr().Interface().(setter); ok {
		if text, ok := d.text(n, path); ok {
			if err := s.set(text); err != nil {
				d.errorf(n.GetToken(), path, "%v", err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.node(n, v.Elem(), path)
	case reflect.String:
		if text, ok := d.text(n, path); ok {
			v.SetString(text)
		}
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) mapping(n ast.Node, v reflect.Value, path string) {
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		if now := formerValues[plainKey(path)]; now != "" {
			d.errorf(n.GetToken(), path, "%s", now)
			return
		}
		d.errorf(n.GetToken(), path, "expected keys and values, not %s", describe(n))
		return
	}
	fields := yamlFields(v.Type())
	seen := map[string]bool{}
	for _, pair := range enginesLast(pairs, path) {
		key := pair.Key.GetToken().Value
		sub := join(path, key)
		index, ok := fields[key]
		switch {
		case !ok && formerKey(sub) != "":
			d.errorf(pair.Key.GetToken(), sub, "is no longer a key: %s", formerKey(sub))
		case !ok:
			d.errorf(pair.Key.GetToken(), sub, "unknown key%s", didYouMean(key, fields))
		case seen[key]:
			d.errorf(pair.Key.GetToken(), sub, "duplicate key: keep one")
		default:
			seen[key] = true
			d.node(pair.Value, v.Field(index), sub)
			d.lines[sub] = pair.Key.GetToken().Position.Line
		}
	}
}

func (d *decoder) sequence(n ast.Node, v reflect.Value, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok { // a single value is a list of one
		one := reflect.MakeSlice(v.Type(), 1, 1)
		d.inherit(one.Index(0))
		d.node(n, one.Index(0), path)
		v.Set(one)
		return
	}
	list := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		d.inherit(list.Index(i))
		d.node(item, list.Index(i), path+"["+strconv.Itoa(i)+"]")
	}
	v.Set(list)
}

func (d *decoder) scalar(n ast.Node, v reflect.Value, path string) {
	text, ok := d.text(n, path)
	if !ok {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		switch text {
		case "true":
			v.SetBool(true)
		case "false":
			v.SetBool(false)
		default:
			d.errorf(n.GetToken(), path, "%q is not true or false", text)
		}
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v.OverflowInt(i) {
			d.errorf(n.GetToken(), path, "%q is not a whole number", text)
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			d.errorf(n.GetToken(), path, "%q is not a number", text)
			return
		}
		v.SetFloat(f)
	default:
		d.errorf(n.GetToken(), path, "cannot be set in a file")
	}
}

// text returns a scalar's text with ${NAME} replaced.
func (d *decoder) text(n ast.Node, path string) (string, bool) {
	var text string
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		text = n.GetToken().Value
	default:
		joined, ok := flowScalar(n)
		if !ok {
			d.errorf(n.GetToken(), path, "expected a single value, not %s%s", describe(n), quoteAdvice(n))
			return "", false
		}
		text = joined
	}
	filled, err := expand(text, d.lookUp)
	if err != nil {
		d.errorf(n.GetToken(), path, "%v", err)
		return "", false
	}
	return filled, true
}

func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func yamlFields(t reflect.Type) map[string]int {
	fields := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); name != "-" {
			fields[name] = i
		}
	}
	return fields
}

func didYouMean(key string, fields map[string]int) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	if best := spelling.Nearest(key, names); best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	slices.Sort(names)
	return "; known here: " + strings.Join(names, ", ")
}
