package pages

import (
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/web"
)

// queryData is the content of the page of one query.
type queryData struct {
	Details   *read.Details
	Clients   string // who ran it
	Claim     string
	Notes     []string // what could not be read
	NoValues  bool
	Violation bool
	Decided   bool
	Done      string // what an action did
	story
	Charts  []template.HTML // of the evidence
	Profile bool            // there is one
	Diff    []piece
	Control []string
	More    []read.Answer
}

// done says what an action did, by the name that its redirect has.
var done = map[string]string{
	"reproduce": "Fresh trials run now. This page shows their result when they end.",
	"reaudit":   "The audit begins again with the next free turn. A violation stays open until the new audit resolves it.",
	"accept":    "The violation is accepted. It sends no alerts until then, or until the engine changes.",
	"revoke":    "The acceptance is ended. The violation sends alerts again.",
}

func (s *site) query(r *http.Request) (content, error) {
	shown := values(r)
	d, err := s.relay.Queries.Details(r.Context(), r.PathValue("id"), shown)
	if err != nil {
		return content{}, err
	}
	data := newQueryData(&d)
	data.NoValues, data.Done = !shown, done[r.URL.Query().Get("done")]
	return content{queryTitle(&d), data}, nil
}

// newQueryData returns what the page shows of details.
func newQueryData(d *read.Details) queryData {
	r := d.Audit.Result()
	data := queryData{
		Details: d, Clients: clients(d), Claim: claimSentence(d), Violation: d.Audit.Verdict == string(analysis.Violation), Decided: r.Verdict != "" && d.Ledger.DataEpoch != "",
		story: newStory(d), Charts: evidenceCharts(d), Profile: d.Charts != nil && r.HasBound(), Control: read.ControlText(r),
	}
	for _, a := range d.Answers {
		switch a.Question {
		case read.NotRead:
			data.Notes = a.Lines
		case read.WhatNow:
			if data.Violation {
				data.More = append(data.More, read.Answer{Question: "On the command line", Lines: a.Lines})
			}
		case read.DoesNotProve:
			data.More = append(data.More, a)
		}
	}
	if d.Audit.SQL != nil {
		data.Diff = diff(d.Audit.SQL.D0, d.Audit.SQL.D1)
	}
	return data
}

// profile shows the privacy profile of a query.
func (s *site) profile(r *http.Request) (content, error) {
	d, err := s.relay.Queries.Profiled(r.Context(), r.PathValue("id"), values(r))
	if err != nil {
		return content{}, err
	}
	data := profileData{ID: d.Audit.ID}
	if d.Charts != nil && d.Audit.Result().HasBound() {
		data.Chart = profileChart(d.Charts).HTML()
	}
	return content{"The privacy profile of a query.", data}, nil
}

// profileData is the content of the page of a privacy profile.
type profileData struct {
	ID    string
	Chart template.HTML
}

// clients names who ran a query the most.
func clients(d *read.Details) string {
	if len(d.Who.Users) == 0 {
		return d.Audit.User
	}
	text := d.Who.Users[0].User
	if app := d.Who.Users[0].Application; app != "" {
		text += " (" + app + ")"
	}
	if more := len(d.Who.Users) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// queryTitle says what is known about a query.
func queryTitle(d *read.Details) string {
	claim := "claims nothing"
	if c := float64(d.Audit.Claim()); !math.IsNaN(c) {
		claim = fmt.Sprintf("claims %.4g", c)
		if of := d.Audit.Result().Claimed; of.Curve != "" {
			claim = fmt.Sprintf("claims %s, which is %.4g at delta %.3g", of.Curve, c, of.Delta)
		}
	}
	lower := d.Audit.ViolationBound()
	switch analysis.Verdict(d.Audit.Verdict) {
	case analysis.Violation:
		switch {
		case d.Audit.Deterministic():
			return "Gives the person away: its answers never vary, and differ between D0 and D1."
		case math.IsNaN(float64(lower)):
			return "Leaks more than it claims."
		}
		return fmt.Sprintf("Leaks %s, %s.", atLeast(lower, d.Audit.Claim()), claim)
	case analysis.NoEvidence:
		return "No leak beyond the claim was found."
	case analysis.Inconclusive:
		return "The audit came to no conclusion."
	}
	return "No verdict yet."
}

// claimSentence says of the claim what the title does not, and where answers went.
func claimSentence(d *read.Details) string {
	claimed := d.Audit.Result().Claimed
	c := float64(d.Audit.Claim())
	answers := ""
	if to := read.DestinationsText(d.Audit.Destinations); to != "" {
		answers = " Answers went: " + to + "."
	}
	if math.IsNaN(c) {
		return "Nothing is claimed." + answers
	}
	var parts []string
	if claimed.Curve != "" {
		parts = append(parts, fmt.Sprintf("the claim is the curve %s, of which epsilon %.4g at delta %.3g is the point of the bound", claimed.Curve, c, claimed.Delta))
	} else if claimed.Delta > 0 {
		parts = append(parts, fmt.Sprintf("the claim has delta %.3g", claimed.Delta))
	}
	if claimed.Source != "" {
		parts = append(parts, strings.TrimSpace("source of the claim: "+claimed.Source+" "+d.Audit.ClaimRule))
	}
	return sentenceOf(strings.Join(parts, "; ")) + answers
}

// act returns the handler of an action on a query, which goes back to its page.
func (s *site) act(name string, do func(r *http.Request, id, operator string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if err := do(r, id, web.IdentityOf(r.Context()).Name); err != nil {
			s.fail(w, r, err)
			return
		}
		http.Redirect(w, r, "/queries/"+url.PathEscape(id)+"?done="+name, http.StatusSeeOther)
	}
}

func (s *site) reproduce(_ *http.Request, id, operator string) error {
	return s.relay.Queries.Reproduce(id, operator)
}

func (s *site) reaudit(r *http.Request, id, operator string) error {
	return asBadRequest(s.relay.Queries.Reaudit(r.Context(), id, operator))
}

func (s *site) accept(r *http.Request, id, operator string) error {
	err := s.relay.Queries.Decide(r.Context(), records.AcceptOptions{ID: id, Until: r.PostFormValue("until"), Reason: r.PostFormValue("reason"), Operator: operator})
	return asBadRequest(err)
}

func (s *site) revoke(r *http.Request, id, operator string) error {
	return asBadRequest(s.relay.Queries.Decide(r.Context(), records.AcceptOptions{ID: id, Reason: r.PostFormValue("reason"), Operator: operator, Revoke: true}))
}

func asBadRequest(err error) error {
	if err == nil {
		return nil
	}
	return badRequestError{err}
}

// piece is a part of two texts: the same in both, or what differs.
type piece struct {
	D0, D1  string
	Differs bool
}

// diff compares two texts word by word. Texts with different numbers of words are returned as one piece.
func diff(d0, d1 string) []piece {
	a, b := pieces(d0), pieces(d1)
	if len(a) != len(b) {
		return []piece{{d0, d1, d0 != d1}}
	}
	var all []piece
	for i := range a {
		one := piece{a[i], b[i], a[i] != b[i]}
		if n := len(all); n > 0 && all[n-1].Differs == one.Differs {
			all[n-1].D0 += one.D0
			all[n-1].D1 += one.D1
		} else {
			all = append(all, one)
		}
	}
	return all
}

// pieces cuts a text into words and what is between them.
func pieces(text string) (all []string) {
	word := func(r rune) bool {
		return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r > 127
	}
	for _, r := range text {
		if n := len(all); n > 0 && word(r) && word([]rune(all[n-1])[0]) {
			all[n-1] += string(r)
		} else {
			all = append(all, string(r))
		}
	}
	return all
}

// badge shows a verdict or state by its colour, its shape and its words.
func badge(verdict any) template.HTML {
	text := fmt.Sprint(verdict)
	class, mark := "quiet", "○"
	switch text {
	case string(analysis.Violation):
		class, mark = "fault", "▲"
	case string(analysis.NoEvidence):
		class, mark = "good", "●"
	case "":
		text = "no verdict yet"
	}
	text = strings.ReplaceAll(text, "_", " ")
	return template.HTML(`<span class="badge ` + class + `"><span aria-hidden="true">` + mark + "</span> " + template.HTMLEscapeString(text) + "</span>") // #nosec G203 -- escaped
}
