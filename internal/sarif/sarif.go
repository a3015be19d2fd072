// Package sarif has the part of SARIF 2.1.0 (Static Analysis Results Interchange Format, OASIS) that findings need: CI
// systems read it. Package sariftest checks a text against the schema of the standard.
package sarif

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// Schema is where the schema of the format is.
const Schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// Level is how serious a result is.
type Level string

// The levels of results.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Note    Level = "note"
)

// Message is a text; Markdown is allowed in the help of a rule alone.
type Message struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitempty"`
}

// Rule is a kind of results.
type Rule struct {
	ID       string         `json:"id"`
	Short    Message        `json:"shortDescription"`
	Full     Message        `json:"fullDescription"`
	Help     Message        `json:"help"`
	HelpURI  string         `json:"helpUri"` // absolute
	Settings map[string]any `json:"properties,omitempty"`
}

// Result is one finding. RuleIndex is set by [New].
type Result struct {
	RuleID    string     `json:"ruleId"`
	RuleIndex int        `json:"ruleIndex"`
	Level     Level      `json:"level"`
	Message   Message    `json:"message"`
	Locations []Location `json:"locations"`
	// Fingerprints identify the finding in later runs.
	Fingerprints map[string]string `json:"partialFingerprints"`
	// Suppressions say why the finding is no alarm; nil = it is one.
	Suppressions []Suppression `json:"suppressions,omitempty"`
	Properties   any           `json:"properties,omitempty"` // an object
}

// Suppression is a decision outside of the file that a result is no alarm.
type Suppression struct {
	Kind          string `json:"kind"` // "external"
	Status        string `json:"status"`
	Justification string `json:"justification"`
}

// Location is where a finding is: in a file, in an object that has a name, or both.
type Location struct {
	Physical *Physical `json:"physicalLocation,omitempty"`
	Logical  []Logical `json:"logicalLocations,omitempty"`
}

// Physical is a place in a file.
type Physical struct {
	Artifact Artifact `json:"artifactLocation"`
	Region   Region   `json:"region"`
}

// Artifact names a file.
type Artifact struct {
	URI string `json:"uri"`
}

// Region is a part of a file.
type Region struct {
	StartLine int `json:"startLine"`
}

// Logical is an object that has a name.
type Logical struct {
	Name          string `json:"name"`
	QualifiedName string `json:"fullyQualifiedName"`
	Kind          string `json:"kind"`
}

// Log is a file.
type Log struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []Run  `json:"runs"`
}

// Run is what one run of a program found.
type Run struct {
	Tool    Tool     `json:"tool"`
	Results []Result `json:"results"` // never nil: nil would say that the run did not end
}

// Tool is the program.
type Tool struct {
	Driver Driver `json:"driver"`
}

// Driver is the program, and the rules of its results.
type Driver struct {
	Name           string `json:"name"`
	Version        string `json:"version"`
	InformationURI string `json:"informationUri"`
	Rules          []Rule `json:"rules"`
}

// New returns a log of one run. rules are those of the results, in any order and any number.
func New(driver Driver, rules []Rule, results []Result) Log {
	index := map[string]int{}
	driver.Rules = []Rule{}
	for _, r := range rules {
		if _, known := index[r.ID]; !known {
			index[r.ID] = len(driver.Rules)
			driver.Rules = append(driver.Rules, r)
		}
	}
	own := make([]Result, len(results))
	for i, r := range results {
		r.RuleIndex = index[r.RuleID]
		own[i] = r
	}
	return Log{Schema: Schema, Version: "2.1.0", Runs: []Run{{Tool: Tool{Driver: driver}, Results: own}}}
}

// Write writes the log.
func (l Log) Write(w io.Writer) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", text)
	}
	return err
}

// File returns the location of a file, by its path as the user gave it: CI systems read a relative one from the root of
// the repository. nil for "" and for standard input, "-".
func File(path string) *Physical {
	if path == "" || path == "-" {
		return nil
	}
	u := url.URL{Path: filepath.ToSlash(filepath.Clean(path))}
	if strings.HasPrefix(u.Path, "/") {
		u.Scheme = "file"
	}
	return &Physical{Artifact{u.String()}, Region{StartLine: 1}}
}
