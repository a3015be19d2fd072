package config

import (
	"encoding/json"
	"fmt"
	"io"
)

// Resolved is the text of a configuration file with the values of its ${...} at the time it was read. It holds secrets
// in plain text, prints as "***", and is not changed after ParseAndCheck has returned it.
type Resolved struct {
	file   string
	text   []byte
	values map[string]Secret // by the text between ${ and }
	// engine is the name of the one of several engines that DecodeResolved returns; "" = the file has a single one.
	engine string
	// workers replaces audit.workers; nil = it does not.
	workers *int
	observe bool   // audit.observe, whatever the file says
	tuning  string // the value of TuningVariable
	state   string // where the process that read the file keeps its state; "" = nowhere
}

// SetWorkers replaces audit.workers in what DecodeResolved returns.
func (r *Resolved) SetWorkers(n int) { r.workers = &n }

// SetObserve sets audit.observe in what DecodeResolved returns.
func (r *Resolved) SetObserve() { r.observe = true }

// ForEngine returns r, of which DecodeResolved returns the configuration of one engine (Config.ForEngine).
func (r Resolved) ForEngine(name string) Resolved {
	r.engine = name
	return r
}

// resolvedJSON is the encoded form of a Resolved; values can be any bytes.
type resolvedJSON struct {
	File    string            `json:"file"`
	Text    []byte            `json:"text"`
	Values  map[string][]byte `json:"values"`
	Engine  string            `json:"engine,omitempty"`
	Workers *int              `json:"workers,omitempty"`
	Observe bool              `json:"observe,omitempty"`
	State   string            `json:"state,omitempty"`
	Tuning  string            `json:"tuning,omitempty"`
}

// Format writes "***", for every verb.
func (r Resolved) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// Encode returns the configuration with its secrets in plain text, for a process that parses the same configuration
// (DecodeResolved). Send it only over a channel that no other process can read.
func (r Resolved) Encode() ([]byte, error) {
	w := resolvedJSON{File: r.file, Text: r.text, Values: map[string][]byte{}, Engine: r.engine, Workers: r.workers, Observe: r.observe, State: r.state, Tuning: r.tuning}
	for name, value := range r.values {
		w.Values[name] = []byte(value.Reveal())
	}
	return json.Marshal(w)
}

// DecodeResolved parses the output of Encode. It uses neither the environment nor any ${file:...}. Of several engines,
// it returns the configuration of the one that ForEngine has chosen.
func DecodeResolved(data []byte) (Config, error) {
	c, engine, err := decodeResolved(data)
	if err != nil {
		return c, err
	}
	return c.ForEngine(engine)
}

// DecodeWhole is DecodeResolved for the configuration of all engines.
func DecodeWhole(data []byte) (Config, error) {
	c, _, err := decodeResolved(data)
	return c, err
}

func decodeResolved(data []byte) (c Config, engine string, err error) {
	var w resolvedJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return Config{}, "", fmt.Errorf("resolved configuration: %w", err)
	}
	c, err = newDecoder(w.File, func(name string) (string, error) {
		value, ok := w.Values[name]
		if !ok {
			return "", fmt.Errorf("${%s} has no value", name)
		}
		return string(value), nil
	}, w.Tuning).parse(w.Text)
	c.keepSpool(w.State, w.File)
	if w.Workers != nil {
		c.SetWorkers(*w.Workers)
	}
	if w.Observe {
		c.SetObserve()
	}
	return c, w.Engine, err
}

// record returns lookUp extended to record its values. A name has one value, even if the file uses it repeatedly.
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
