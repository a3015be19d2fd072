package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// curveAudit is what a restart must keep of an audit of a curve.
type curveAudit struct {
	ID      string
	State   string
	Verdict string
	Report  struct {
		Claimed struct {
			Epsilon, Delta float64
			Curve, Source  string
		}
		Lower float64     `json:"epsilon_lower"`
		Curve curve.Curve `json:"curve_lower"`
	}
	Violation *struct {
		Claimed float64     `json:"epsilon_claimed"`
		Delta   float64     `json:"delta_claimed"`
		Curve   curve.Curve `json:"claim_curve"`
	}
}

// TestRunCurve: a captured query that claims a curve in a comment is audited against it. The alert, the ledger, the
// pages and the commands name the curve and the point that is refuted, also after a restart.
func TestRunCurve(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER")
	conn := s.connect(t)
	exec0(t, conn, "/*dp_curve='mu=0.268'*/ SELECT noisy(count(*), 0.2) FROM people")
	exec0(t, conn, "SET dp.epsilon = 'mu=0.268'")
	exec0(t, conn, "SELECT noisy(count(*) + 0, 5) FROM people")
	audits := func() (all []curveAudit) {
		_, body := s.get(t, "/api/status")
		var v struct {
			Audit struct{ Audits []curveAudit }
		}
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		return v.Audit.Audits
	}
	var wrong, honest curveAudit
	s.until(t, "two verdicts", func() bool {
		all := audits()
		for _, a := range all {
			if a.State != "decided" {
				return false
			}
			if a.Verdict == "violation" {
				wrong = a
			} else {
				honest = a
			}
		}
		return len(all) == 2
	})
	check := func(when string) {
		t.Helper()
		c, v := wrong.Report.Claimed, wrong.Violation
		if c.Curve != "mu=0.268" || c.Source != "comment" || !(wrong.Report.Lower > c.Epsilon) || !(wrong.Report.Curve.Parameter() >= .265) || v == nil || v.Curve != "mu=0.268" || v.Claimed != c.Epsilon || v.Delta != c.Delta {
			t.Errorf("%s: %+v, violation %+v", when, wrong, v)
		}
		if h := honest.Report.Claimed; honest.Verdict != "no_evidence" || h.Curve != "mu=0.268" || h.Source != "setting" {
			t.Errorf("%s: %+v", when, honest)
		}
		_, page := s.get(t, "/queries/"+wrong.ID)
		if !strings.Contains(page, "the curve mu=0.268") {
			t.Errorf("%s: the page does not name the curve:\n%s", when, page)
		}
	}
	check("after the verdict")
	for _, want := range []string{`"dp.claim.curve":"mu=0.268"`, `"dp.epsilon.claimed":` + strconv.FormatFloat(wrong.Report.Claimed.Epsilon, 'g', -1, 64), "the curve mu=0.268 does not hold"} {
		if log := s.log.String(); !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
	s.until(t, "everything is written", func() bool {
		_, body := s.get(t, "/api/status")
		return strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	before := wrong
	_ = conn.Close(t.Context()) // sessions may drain for an hour
	s.end(t)
	s.run(t, s.config)
	s.until(t, "the audits are restored", func() bool {
		all := audits()
		for _, a := range all {
			if a.Verdict == "violation" {
				wrong = a
			} else {
				honest = a
			}
		}
		return len(all) == 2
	})
	check("after a restart")
	if wrong.Report != before.Report {
		t.Errorf("before the restart %+v, after it %+v", before.Report, wrong.Report)
	}
	if log := s.log.String(); strings.Contains(log, `"msg":"privacy violation"`) {
		t.Errorf("the violation is reported again:\n%s", log)
	}
	rows := 0
	if err := pgtest.Connect(t, s.direct).QueryRow(t.Context(), "SELECT count(*) FROM dpwatch_ledger.queries WHERE claim_curve = 'mu=0.268'").Scan(&rows); err != nil || rows != 2 {
		t.Errorf("%d queries in the ledger have the curve, %v; want 2", rows, err)
	}
}

// TestCurveFlags: the flags of a claim that is a curve, and what is wrong with them.
func TestCurveFlags(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	files := []string{"analyze", "--d0", file(t, "d0", laplace(rng, 2000, 2, 1)), "--d1", file(t, "d1", laplace(rng, 2000, 0, 1))}
	for _, c := range []struct {
		flags []string
		code  int
		want  string
	}{
		{[]string{"--mu", "0.268"}, exitViolation, "leaks more than the claimed curve mu=0.268 allows"},
		{[]string{"--rho", "0.036"}, exitViolation, "the curve rho=0.036, tested at 4 points (flag)"},
		{[]string{"--curve", "(1,1e-5) (0.2,0.0391)"}, exitViolation, "the curve (0.2,0.0391) (1,1e-05)"},
		{[]string{"--mu", "5"}, exitDone, "the curve mu=5"},
		{[]string{"--mu", "0"}, exitFailure, "--mu: mu must be a number from"},
		{[]string{"--curve", "1"}, exitFailure, "--curve: is no curve: write mu=NUMBER"},
		{[]string{"--mu", "1", "--epsilon", "1"}, exitFailure, "are different claims: give one of them"},
		{[]string{"--mu", "1", "--rho", "1"}, exitFailure, "are different claims: give one of them"},
		{[]string{"--mu", "1", "--partition", "0,10"}, exitFailure, "test one epsilon: give --epsilon and --delta"},
		{nil, exitFailure, "--epsilon E (or --mu, --rho, --curve)"},
	} {
		call(t, "", append(slices.Clone(files), c.flags...)...).want(t, c.code, c.want)
	}
}
