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
	Claim     string
	Five      []read.Answer // how bad, what, why, who, what now
	More      []read.Answer // the others
	Charts    []template.HTML
	Diff      []piece
	Violation bool
	Decided   bool
	NoValues  bool
	Done      string // what an action did
}

// answers is the number of questions at the top of the page.
const answers = 5

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
	data := queryData{
		Details: &d, Claim: claimSentence(&d), Five: d.Answers[:min(answers, len(d.Answers))], More: d.Answers[min(answers, len(d.Answers)):],
		Charts: charts(&d), Violation: d.Audit.Verdict == string(analysis.Violation), Decided: d.Audit.Result().Verdict != "" && d.Ledger.DataEpoch != "", NoValues: !shown, Done: done[r.URL.Query().Get("done")],
	}
	if d.Audit.SQL != nil {
		data.Diff = diff(d.Audit.SQL.D0, d.Audit.SQL.D1)
	}
	return content{queryTitle(&d), data}, nil
}

// queryTitle says what is known about a query.
func queryTitle(d *read.Details) string {
	claim := "nothing is claimed"
	if c := float64(d.Audit.Claim()); !math.IsNaN(c) {
		claim = fmt.Sprintf("it claims %.4g", c)
		if of := d.Audit.Result().Claimed; of.Curve != "" {
			claim = fmt.Sprintf("it claims %s, which is %.4g at delta %.3g", of.Curve, c, of.Delta)
		}
	}
	lower := d.Audit.ViolationBound()
	switch analysis.Verdict(d.Audit.Verdict) {
	case analysis.Violation:
		switch {
		case d.Audit.Deterministic():
			return "This query gives the person away: its answers never vary, and differ between D0 and D1."
		case math.IsNaN(float64(lower)):
			return "This query leaks more than it claims."
		}
		return fmt.Sprintf("This query leaks %s; %s.", atLeast(lower, d.Audit.Claim()), claim)
	case analysis.NoEvidence:
		return "No leak beyond the claim was found in this query."
	case analysis.Inconclusive:
		return "The audit of this query came to no conclusion."
	}
	return "The audit of this query has no verdict yet."
}

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
	text := fmt.Sprintf("Claimed: epsilon %.4g", c)
	if claimed.Delta > 0 {
		text += fmt.Sprintf(", delta %.3g", claimed.Delta)
	}
	if claimed.Curve != "" {
		text = fmt.Sprintf("Claimed: the curve %s; of it, epsilon %.4g at delta %.3g is the point of the bound", claimed.Curve, c, claimed.Delta)
	}
	if claimed.Source != "" {
		text += "; source: " + claimed.Source
	}
	if d.Audit.ClaimRule != "" {
		text += " " + d.Audit.ClaimRule
	}
	return text + "." + answers
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
