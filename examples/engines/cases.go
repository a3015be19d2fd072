package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// engine is a folder of this directory: an engine, with its adapter, its data and its queries.
type engine struct {
	name, dir string
	versions  []string // those of which there is a file requirements-VERSION.txt
	gateway   bool     // it has a child.py for examples/gateway instead of functions for PostgreSQL
	cases     []query
}

// query is a query of honest.sql or faults.sql with what is expected of it, which its comments say.
type query struct {
	name, sql string
	honest    bool
	expect    map[string]string // verdict by version; versions that are not in it are not audited
	cause     string            // the cause that is right, by docs/causes.md; "open" if none of those is, and none should be named
	named     []string          // the causes that dpwatch may name first
	known     string            // where the fault is publicly known, or "new"
	claim     string            // epsilon, instead of the claim of dpwatch.yaml; "" = that one
	pairs     int               // pairs of trials if no violation is expected; 0 = -honest-trials
	issue     string            // the name of the issue that -write writes; "" = none
}

// engines returns the engines of a directory whose name or version contains the word.
func engines(dir, word string) ([]engine, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "dpwatch.yaml"))
	if err != nil || files == nil {
		return nil, fmt.Errorf("%s holds no engines: start this program in the root of the repository", dir)
	}
	var all []engine
	for _, file := range files {
		e := engine{name: filepath.Base(filepath.Dir(file)), dir: filepath.Dir(file)}
		if _, err := os.Stat(filepath.Join(e.dir, "child.py")); err == nil {
			e.gateway = true
		}
		requirements, err := filepath.Glob(filepath.Join(e.dir, "requirements-*.txt"))
		if err != nil {
			return nil, err
		}
		var versions []string
		for _, r := range requirements {
			version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(r), "requirements-"), ".txt")
			versions = append(versions, version)
			if strings.Contains(e.name+" "+version, word) {
				e.versions = append(e.versions, version)
			}
		}
		for _, name := range []string{"honest.sql", "faults.sql"} {
			cases, err := readCases(filepath.Join(e.dir, name), versions)
			if err != nil {
				return nil, err
			}
			e.cases = append(e.cases, cases...)
		}
		if e.versions != nil {
			all = append(all, e)
		}
	}
	if all == nil {
		return nil, fmt.Errorf("no engine of %s has a name or version with %q", dir, word)
	}
	return all, nil
}

// readCases reads the queries of a file. Each ends with a semicolon at the end of a line, and has comments of the form
// "-- key: value" before it.
func readCases(path string, versions []string) ([]query, error) {
	text, err := os.ReadFile(path) //nolint:gosec // of this folder
	if err != nil {
		return nil, err
	}
	var cases []query
	for _, part := range strings.SplitAfter(string(text), ";\n") {
		q := query{honest: filepath.Base(path) == "honest.sql"}
		expect := ""
		for line := range strings.Lines(part) {
			line = strings.TrimSpace(line)
			comment, ok := strings.CutPrefix(line, "--")
			if !ok {
				q.sql += strings.TrimSuffix(line, ";") + "\n"
				continue
			}
			key, value, _ := strings.Cut(strings.TrimSpace(comment), ": ")
			switch key {
			case "name":
				q.name = value
			case "expect":
				expect = value
			case "cause":
				q.cause = value
			case "named":
				q.named = strings.Split(value, ", ")
			case "known":
				q.known = value
			case "claim":
				q.claim = value
			case "pairs":
				if q.pairs, err = strconv.Atoi(value); err != nil {
					return nil, fmt.Errorf("%s: %q: pairs: %w", path, q.name, err)
				}
			case "issue":
				q.issue = value
			}
		}
		if q.sql = strings.TrimSpace(q.sql); q.sql == "" {
			continue
		}
		if q.expect, err = expectation(expect, versions); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, q.name, err)
		}
		if q.name == "" || !q.honest && (q.cause == "" || q.known == "") {
			return nil, fmt.Errorf("%s: %q: write a name, and in faults.sql a cause and where the fault is known", path, q.sql)
		}
		if q.named == nil {
			q.named = []string{strings.ReplaceAll(q.cause, "open", "none")}
		}
		cases = append(cases, q)
	}
	return cases, nil
}

// expectation parses "violation", which holds for all versions, or "violation in 0.12.1, no evidence in 0.16.0".
func expectation(text string, versions []string) (map[string]string, error) {
	found := map[string]string{}
	for item := range strings.SplitSeq(text, ", ") {
		verdict, version, one := strings.Cut(item, " in ")
		verdict = strings.ReplaceAll(verdict, " ", "_")
		if !slices.Contains([]string{"violation", "no_evidence"}, verdict) {
			return nil, fmt.Errorf("expect: %q: write \"violation\" or \"no evidence\", and possibly \" in VERSION\"", item)
		}
		if one && !slices.Contains(versions, version) {
			return nil, fmt.Errorf("expect: there is no requirements-%s.txt", version)
		}
		for _, v := range versions {
			if !one || v == version {
				found[v] = verdict
			}
		}
	}
	return found, nil
}
