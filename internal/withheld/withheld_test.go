package withheld_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/template"

	"github.com/goccy/go-yaml"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

const secret = "MRN777"

// holder has texts in fields whose methods package fmt finds, and in fields where it does not.
type holder struct {
	Text   withheld.Text
	Slice  withheld.Value[[]string]
	inside any
	list   []withheld.Text
	point  *withheld.Text
}

// TestPrinted: no way of printing a Text or a Value, in a field or alone, reveals the value.
func TestPrinted(t *testing.T) {
	t.Parallel()
	text := withheld.New("key "+secret, "a text "+withheld.Mark)
	of := withheld.Of([]string{secret})
	h := holder{text, of, of, []withheld.Text{text}, &text}
	var b bytes.Buffer
	for _, v := range []any{text, &text, of, &of, h, &h, []any{text, of}, map[string]any{"k": text, "v": of}, struct{ x any }{h}} {
		for _, verb := range "vsqxXdfeEgGtTbcoOUp" {
			for _, flag := range []string{"", "+", "#", "0", "-20", " ", "+#"} {
				fmt.Fprintf(&b, "%"+flag+string(verb)+"\n", v)
			}
		}
		fmt.Fprintln(&b, v)
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(raw)
		core := zapcore.NewTee(
			zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&b), zap.DebugLevel),
			zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.AddSync(&b), zap.DebugLevel))
		zap.New(core).Info("", zap.Any("any", v), zap.Reflect("reflect", v))
		if err := template.Must(template.New("").Parse("{{.}} {{printf \"%s\" .}}")).Execute(&b, v); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []any{text, of, holder{Text: text, Slice: of}} {
		out, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(out)
	}
	all := b.String()
	for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), fmt.Sprint([]byte(secret)), fmt.Sprintf("%x", text.Reveal())} {
		if i := strings.Index(all, form); i >= 0 {
			t.Errorf("printed: %s", all[max(0, i-100):i+20])
		}
	}
	if !strings.Contains(all, "a text (withheld)") {
		t.Error("the public form is not printed")
	}
	if text.Reveal() != "key MRN777" || of.Reveal()[0] != secret || text.Revealed().String() != "key MRN777" {
		t.Errorf("revealed: %q, %q", text.Reveal(), of.Reveal())
	}
}

func TestZero(t *testing.T) {
	t.Parallel()
	var text withheld.Text
	var of withheld.Value[[]int]
	if text.String() != "" || text.Reveal() != "" || of.Reveal() != nil || !text.Equal(withheld.Public("")) {
		t.Errorf("%q, %q, %v", text.String(), text.Reveal(), of.Reveal())
	}
}

func TestCompose(t *testing.T) {
	t.Parallel()
	a, b := withheld.New(`"x"`, "a text"), withheld.New(`"y"`, "a text")
	for _, c := range []struct {
		got           withheld.Text
		value, public string
	}{
		{withheld.Sprintf("%d of %s, %s", 3, a, "n"), `3 of "x", n`, "3 of a text, n"},
		{withheld.Sprintf("%d of %s", 3, withheld.Public("n")), "3 of n", "3 of n"},
		{withheld.Join([]withheld.Text{a, b, withheld.Public("NULL"), a}, " or "), `"x" or "y" or NULL or "x"`, "a text or NULL or a text"},
		{withheld.Join(nil, ", "), "", ""},
	} {
		if c.got.Reveal() != c.value || c.got.String() != c.public {
			t.Errorf("%q, %q; want %q, %q", c.got.Reveal(), c.got.String(), c.value, c.public)
		}
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var back withheld.Text
	if err := json.Unmarshal(raw, &back); err != nil || back.Reveal() != "a text" {
		t.Errorf("read back %q, %v", back.Reveal(), err)
	}
}

type short struct{ whole string }

func (e short) Error() string  { return "SQLSTATE 22P02" }
func (e short) Reveal() string { return e.whole }

func TestRevealError(t *testing.T) {
	t.Parallel()
	inner := short{"quotes " + secret}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("plain"), "plain"},
		{inner, "quotes MRN777"},
		{fmt.Errorf("op: %w: hint", inner), "op: quotes MRN777: hint"},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", inner)), "a: b: quotes MRN777"},
		{errors.Join(errors.New("first"), fmt.Errorf("op: %w", inner)), "first\nop: quotes MRN777"},
	} {
		if got := withheld.Reveal(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if c.err != nil && strings.Contains(c.err.Error(), secret) {
			t.Errorf("%q is not withheld", c.err)
		}
	}
}

// TestRecovered: a recovered panic is described by its place and type, or by the runtime's message.
func TestRecovered(t *testing.T) {
	t.Parallel()
	recovered := func(f func()) (err error) {
		defer func() { err = withheld.Recovered(recover()) }()
		f()
		return nil
	}
	var none []int
	for _, c := range []struct {
		f            func()
		short, whole string
	}{
		{func() { panic("row " + secret) }, "a value of type string (withheld)", "row " + secret},
		{func() { panic(errors.New("row " + secret)) }, "a value of type *errors.errorString (withheld)", "row " + secret},
		{func() { none[3] = 1 }, "index out of range [3] with length 0", "index out of range [3] with length 0"},
	} {
		err := recovered(c.f)
		if text := fmt.Sprintf("%v %+v %#v %q", err, err, err, err); !strings.Contains(err.Error(), c.short) || strings.Contains(text, secret) {
			t.Errorf("%s, want %q", text, c.short)
		}
		if !strings.Contains(err.Error(), "panic at withheld/withheld_test.go:") || !strings.Contains(withheld.Reveal(err), c.whole) {
			t.Errorf("%q, %q", err, withheld.Reveal(err))
		}
	}
}
