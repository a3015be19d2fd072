package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dpwatch/dpwatch/config"
)

// No usual way of printing a value prints a secret, even inside other values.
func TestSecretIsRedacted(t *testing.T) {
	t.Parallel()
	c, resolved, err := config.ParseAndCheck("f", []byte(minimal), env)
	if err != nil {
		t.Fatal(err)
	}
	var printed []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v"} {
		printed = append(printed, fmt.Sprintf(verb, c.Shadow.DSN), fmt.Sprintf(verb, c.Shadow), fmt.Sprintf(verb, &c), fmt.Sprintf(verb, resolved), fmt.Sprintf(verb, &resolved))
	}
	for _, v := range []any{c, &c, resolved, map[string]any{"x": c.Shadow.DSN}} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		line, err := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()).EncodeEntry(zapcore.Entry{}, []zapcore.Field{zap.Any("v", v)})
		if err != nil {
			t.Fatal(err)
		}
		printed = append(printed, string(text), line.String())
	}
	for _, text := range printed {
		if strings.Contains(text, "s3cret") || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", "s3cret")) || strings.Contains(text, "czNjcmV0") {
			t.Errorf("the secret is in %s", text)
		}
	}
}
