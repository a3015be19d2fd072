package relay

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/config"
)

const reloadFile = `
proxy: {listen: 127.0.0.1:1, upstream: 127.0.0.1:2}
shadow: {dsn: host=x}
privacy: {protected: [public.users], catalog: host=y, unit: {table: public.users, key: id}}
claims: {functions: [{name: anon_count, epsilon: -1}], safe_functions: [laplace]}
`

func parseConfig(t *testing.T, text string) config.Config {
	t.Helper()
	c, err := config.Parse("dpwatch.yaml", []byte(text), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// change gives a value another one, and reports whether it can.
func change(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 0.5)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		} else {
			v.SetZero()
		}
	case reflect.Slice:
		v.Set(reflect.Append(v.Slice(0, v.Len()), reflect.Zero(v.Type().Elem())))
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		m.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
		v.Set(m)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && change(v.Field(i)) {
				return true
			}
		}
		return false
	default:
		return false
	}
	return true
}

// leaves calls each with every value that a key of the file sets.
func leaves(v reflect.Value, path string, each func(key string, v reflect.Value)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, inline, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch key := strings.TrimPrefix(path+"."+name, "."); {
		case !f.IsExported():
		case inline == "inline" || f.Anonymous && name == "":
			leaves(v.Field(i), path, each)
		case v.Field(i).Kind() == reflect.Struct && slices.ContainsFunc(config.Keys(), func(k string) bool { return strings.HasPrefix(k, key+".") }):
			leaves(v.Field(i), key, each)
		case name != "" && name != "-":
			each(key, v.Field(i))
		}
	}
}

// TestReloadNamesTheKey: a change of any key is taken over, or the error names this key and no other one.
func TestReloadNamesTheKey(t *testing.T) {
	t.Parallel()
	before, after, tried := parseConfig(t, reloadFile), parseConfig(t, reloadFile), 0
	leaves(reflect.ValueOf(&after).Elem(), "", func(key string, v reflect.Value) {
		saved := reflect.New(v.Type()).Elem()
		saved.Set(v)
		defer v.Set(saved)
		if !change(v) {
			t.Errorf("%s: this test cannot change a %s", key, v.Type())
			return
		}
		tried++
		changed := config.Changed(before, after)
		if !slices.Equal(changed, []string{key}) && key != "engines" {
			t.Errorf("%s: changed %v", key, changed)
		}
		err := canReload(before, after, changed)
		names, restart := "", false
		if err != nil {
			names, restart = strings.CutPrefix(err.Error(), "restart dpwatch for changes of ")
		}
		switch {
		case config.Reloadable(key) && restart:
			t.Errorf("%s can be reloaded: %v", key, err)
		case !config.Reloadable(key) && names != key:
			t.Errorf("%s: %v", key, err)
		}
	})
	if tried < 80 {
		t.Errorf("%d keys were changed", tried)
	}
}
