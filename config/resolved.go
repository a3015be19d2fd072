package config

import (
	"encoding/json"
	"fmt"
	"io"
)

// Resolved is the text of a configuration file with the values that its ${...} had when it was read. It holds secrets in
// plain, prints as stars, and is not changed after ParseAndCheck returned it.
type Resolved struct {
	file   string
	text   []byte
	values map[string]Secret // by what stands between ${ and }
}

// resolvedJSON is how Encode writes a Resolved; values may be any bytes.
type resolvedJSON struct {
	File   string            `json:"file"`
	Text   []byte            `json:"text"`
	Values map[string][]byte `json:"values"`
}

// Format writes "***", whatever the verb.
func (r Resolved) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// Encode returns the configuration with its secrets in plain, for a process that is to read the same configuration
// (DecodeResolved). It belongs on a channel that only this process and that one can read, and nowhere else.
func (r Resolved) Encode() ([]byte, error) {
	w := resolvedJSON{File: r.file, Text: r.text, Values: map[string][]byte{}}
	for name, value := range r.values {
		w.Values[name] = []byte(value.Reveal())
	}
	return json.Marshal(w)
}

// DecodeResolved reads what Encode wrote. It uses neither the environment nor any ${file:...}.
func DecodeResolved(data []byte) (Config, error) {
	var w resolvedJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return Config{}, fmt.Errorf("resolved configuration: %w", err)
	}
	return newDecoder(w.File, func(name string) (string, error) {
		value, ok := w.Values[name]
		if !ok {
			return "", fmt.Errorf("${%s} has no value", name)
		}
		return string(value), nil
	}).parse(w.Text)
}

// record returns lookUp such that its values are kept. A name has one value, however often the file holds it.
func (r *Resolved) record(lookUp func(string) (string, error)) func(string) (string, error) {
	return func(name string) (string, error) {
		if value, ok := r.values[name]; ok {
			return value.Reveal(), nil
		}
		value, err := lookUp(name)
		if err == nil {
			r.values[name] = Secret(value)
		}
		return value, err
	}
}
