package pages

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/read"
)

// overviewData is the content of the first page.
type overviewData struct {
	Engines      []status.Overview
	Changes      []changeRow
	ChangesFault string // why there are no changes
}

// changeRow is a line of what changed.
type changeRow struct {
	At                time.Time
	ID, What, Summary string
}

func (s *site) overview(r *http.Request) (content, error) {
	engine := r.URL.Query().Get("engine")
	engines, err := s.relay.Engines.Overviews(engine, values(r))
	if err != nil {
		return content{}, badRequestError{err}
	}
	data := overviewData{Engines: engines}
	changes, err := s.relay.Ledgers.Changes(r.Context(), engine)
	switch {
	case errors.Is(err, setup.ErrNoLedger):
		data.ChangesFault = "Without a ledger, changes are not kept: set ledger.dsn."
	case err != nil:
		data.ChangesFault = sentence(err)
	}
	for _, c := range changes {
		data.Changes = append(data.Changes, changeRow{c.At, c.Key[:min(12, len(c.Key))], changeText(c), c.Summary})
	}
	return content{overviewTitle(engines), data}, nil
}

// overviewTitle sums up the first page.
func overviewTitle(engines []status.Overview) string {
	open, accepted, decided, restoring := 0, 0, 0, false
	for _, o := range engines {
		restoring = restoring || o.Restoring
		decided += o.Decided
		open += o.Open()
		accepted += len(o.Found) - o.Open()
	}
	title := plural(open, "query leaks", "queries leak") + " more than claimed."
	switch {
	case open == 0 && restoring:
		return "The audits are being restored from the ledger."
	case open == 0:
		title = fmt.Sprintf("No leak is open; %s a verdict.", plural(decided, "query has", "queries have"))
	}
	if accepted > 0 {
		title = strings.TrimSuffix(title, ".") + fmt.Sprintf("; %s accepted.", plural(accepted, "leak is", "leaks are"))
	}
	return title
}

// causeGroup are violations with one probable cause.
type causeGroup struct {
	Name  string // a sentence without its end
	Code  string // section of the page of causes; "" = none
	Found []read.Audit
}

// byCause groups violations by their probable cause, in the order of the first of each; accepted ones are one group.
func byCause(found []read.Audit) (all []causeGroup) {
	for _, a := range found {
		g := causeGroup{Name: "Cause not known"}
		if name := a.Cause(); name != "" {
			g = causeGroup{Name: strings.TrimSuffix(sentenceOf(name), "."), Code: string(a.Report.Finding.Causes[0].Code)}
		}
		if a.Accepted != nil {
			g = causeGroup{Name: "Accepted"}
		}
		i := slices.IndexFunc(all, func(x causeGroup) bool { return x.Name == g.Name })
		if i < 0 {
			i, all = len(all), append(all, g)
		}
		all[i].Found = append(all[i].Found, a)
	}
	return all
}

// changeText says in words what happened.
func changeText(c read.Change) string {
	switch {
	case c.State == read.FirstSeen:
		return "a new query was seen"
	case c.State == read.ActionReaudit:
		return "the audit begins again: " + c.Reason
	case c.State == read.Resolved:
		return "the violation was resolved: " + c.Reason
	case c.Verdict == "violation":
		return "a violation was found"
	case c.Verdict != "":
		return "the audit ended: " + strings.ReplaceAll(c.Verdict, "_", " ")
	}
	return c.Reason
}

// loginData is the content of the login.
type loginData struct {
	Failed bool
	To     string
}

func (s *site) login(r *http.Request) (content, error) {
	q := r.URL.Query()
	return content{"Log in to see what is audited.", loginData{q.Get("failed") != "", q.Get("to")}}, nil
}
