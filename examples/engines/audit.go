package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// result is what an audit of a query found, and what is wrong with it: "" if it is as expected.
type result struct {
	engine, version string
	query           query
	seconds         float64
	report          report
	missed          []string // what was not as expected in audits that were repeated: see attempts
	fault           string
}

// report is what this program reads of dpwatch audit -o json.
type report struct {
	Verdict string   `json:"verdict"`
	Reason  string   `json:"reason"`
	Lower   float64  `json:"epsilon_lower"`
	Epsilon *float64 `json:"epsilon_estimate"` // null: without limit
	Claimed struct {
		Epsilon float64 `json:"epsilon"`
		Delta   float64 `json:"delta"`
	} `json:"claimed"`
	Trials struct {
		D0 int `json:"d0"`
	} `json:"trials"`
	DetectedAt *int     `json:"detected_at"`
	Detectable *float64 `json:"minimal_detectable_epsilon"`          // null: nothing would have been found
	InTenth    *float64 `json:"minimal_detectable_epsilon_in_tenth"` // of a leak in one answer of ten
	Finding    *struct {
		Causes []struct {
			Cause string `json:"code"`
		} `json:"causes"`
	} `json:"finding"`
}

// cause returns the first cause that the report names; "none" if there is none.
func (r report) cause() string {
	if r.Finding == nil || len(r.Finding.Causes) == 0 {
		return "none"
	}
	return r.Finding.Causes[0].Cause
}

// pairs returns how many pairs of trials the violation took, or how many were made without finding one.
func (r report) pairs() int {
	if r.DetectedAt != nil {
		return *r.DetectedAt
	}
	return r.Trials.D0
}

// auditor runs dpwatch in the directory of an engine.
type auditor struct {
	program string // path of dpwatch
	word    string // only queries whose name contains it
	issues  string // directory to which issues for the maintainers are written; "" = none are
	limits  limits
}

// limits are the numbers of pairs of trials of an audit.
type limits struct{ honest, faulty, measure int }

// attempts is how often a query is audited at most until the result is as expected. A right result can be missed by
// chance: the test of dependence makes 1 of 1000 audits inconclusive at most, a violation can take more pairs, and a
// cause is a guess. What is missed with a probability of up to 6 % is missed each time with 1e-6. A query that is
// expected to have no violation and has one is not audited again.
const attempts = 5

// run makes the copies and audits each query of an engine that its version is expected to answer.
func (a auditor) run(ctx context.Context, s *server, e engine, version string, done func(result)) error {
	if _, err := a.dpwatch(ctx, e.dir, s.environ, "neighbours", "create", "--config", "dpwatch.yaml"); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	for _, q := range e.cases {
		want, ok := q.expect[version]
		if !ok || !strings.Contains(q.name, a.word) {
			continue
		}
		audit := func(format string, more ...string) ([]byte, error) {
			if q.claim != "" {
				more = append(more, "--epsilon", q.claim)
			}
			return a.dpwatch(ctx, e.dir, s.environ, append([]string{"audit", "--config", "dpwatch.yaml", "--sql", q.sql, "-o", format}, more...)...)
		}
		// A violation that is expected needs no small rate of false alarms; half the trials do.
		pairs, confidence := a.limits.faulty, "0.99"
		if want == "no_evidence" {
			pairs, confidence = max(a.limits.honest, q.pairs), "0.99999998" // of all honest ones together, one run in a million accuses one
		}
		r := result{engine: e.name, version: version, query: q}
		began := time.Now()
		for {
			r.report = report{}
			text, err := audit("json", "--confidence", confidence, "--max-trials", strconv.Itoa(pairs), "--measure", strconv.Itoa(a.limits.measure))
			if err == nil {
				err = json.Unmarshal(text, &r.report)
			}
			if err != nil {
				return fmt.Errorf("%s %s: %s: %w", e.name, version, q.name, err)
			}
			r.fault = r.compare(want)
			if r.fault == "" || len(r.missed) == attempts-1 || want == "no_evidence" && r.report.Verdict == "violation" {
				break
			}
			r.missed = append(r.missed, r.fault)
		}
		r.seconds = time.Since(began).Seconds()
		done(r)
		if want == "violation" && r.fault == "" && q.issue != "" && a.issues != "" {
			text, err := audit("issue", "--shrink", "--confidence", confidence, "--max-trials", strconv.Itoa(pairs))
			if err == nil {
				err = os.WriteFile(filepath.Join(a.issues, q.issue+".md"), text, 0o644) //nolint:gosec // a page
			}
			if err != nil {
				return fmt.Errorf("%s %s: %s: %w", e.name, version, q.name, err)
			}
		}
	}
	return nil
}

// compare returns what is not as expected.
func (r result) compare(verdict string) string {
	if r.report.Verdict != verdict {
		return fmt.Sprintf("verdict %s, want %s (%s)", r.report.Verdict, verdict, r.report.Reason)
	}
	if named := r.report.cause(); verdict == "violation" && !slices.Contains(r.query.named, named) {
		return fmt.Sprintf("the first cause is %s, want %s", named, strings.Join(r.query.named, " or "))
	}
	return ""
}

// dpwatch runs a command of it; that a violation was found, or the audit was inconclusive, is no error.
func (a auditor) dpwatch(ctx context.Context, dir string, environ []string, args ...string) ([]byte, error) {
	program, err := filepath.Abs(a.program)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() != 2 && exit.ExitCode() != 3 {
		return nil, fmt.Errorf("dpwatch %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	} else if err != nil && exit == nil {
		return nil, fmt.Errorf("%s: %w; make build", program, err)
	}
	return stdout.Bytes(), nil
}
