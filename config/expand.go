package config

import (
	"fmt"
	"os"
	"strings"
)

// expand replaces ${NAME} with the environment variable and ${file:/path} with the content of a file without its
// trailing newline, so that secrets stay out of the configuration. $${ is a literal ${. An unset variable is an error,
// not an empty string.
func expand(text string, lookUp func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return "", fmt.Errorf("${ without a closing brace; write $${ for a literal one")
		}
		value, err := lookUp(text[i+2 : i+end])
		if err != nil {
			return "", err
		}
		b.WriteString(text[:i] + value)
		text = text[i+end+1:]
	}
}

// lookUpIn returns a function that resolves ${name} from a file or with getenv.
func lookUpIn(getenv func(string) string) func(name string) (string, error) {
	return func(name string) (string, error) {
		if path, ok := strings.CutPrefix(name, "file:"); ok {
			data, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("${%s}: %w", name, err)
			}
			return strings.TrimRight(string(data), "\r\n"), nil
		}
		value := getenv(name)
		if value == "" {
			return "", fmt.Errorf("${%s} is not set in the environment", name)
		}
		return value, nil
	}
}
