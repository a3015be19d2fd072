package pages

import (
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/read"
)

// queriesData is the content of the list of queries.
type queriesData struct {
	Search, Status, Sort string
	Up                   bool
	Statuses, Sorts      []choice
	Rows                 []read.Audit
	Summary              string
	Filtered             bool
	Engines              bool // rows name their engine
	Previous, Next       string
}

// choice is an option of a menu.
type choice struct{ Value, Name string }

// perPage is the number of queries on a page.
const perPage = 50

var statuses = []choice{
	{"", "all"},
	{read.StatusOpen, "open violations"},
	{read.StatusAccepted, "accepted violations"},
	{read.StatusNoEvidence, "no evidence of a leak"},
	{read.StatusInconclusive, "inconclusive"},
	{read.StatusRunning, "no verdict yet"},
	{read.StatusUntried, "not begun"},
}

var sorts = []choice{
	{read.BySeverity, "violations first"},
	{read.ByBound, "largest lower bound"},
	{read.ByClaim, "largest claim"},
	{read.ByTrials, "most trials"},
	{read.ByExecutions, "most executions"},
	{read.ByLast, "latest run"},
	{read.ByFirst, "latest first seen"},
	{read.BySummary, "SQL, from the end"},
}

// maxSearch bounds a search, in bytes.
const maxSearch = 200

func (s *site) queries(r *http.Request) (content, error) {
	v := r.URL.Query()
	page, err := strconv.Atoi(v.Get("page"))
	if v.Get("page") != "" && (err != nil || page < 1 || page > 1e6) {
		return content{}, badRequestError{errors.New("page must be a number from 1")}
	}
	page = max(1, page)
	o := read.Filter{
		Engine: v.Get("engine"), Search: v.Get("search"), Status: v.Get("status"), Sort: v.Get("sort"), Up: v.Get("up") != "", Limit: perPage, Offset: (page - 1) * perPage,
	}
	if len(o.Search) > maxSearch {
		return content{}, badRequestError{fmt.Errorf("search: must have at most %d bytes", maxSearch)}
	}
	list, err := s.relay.Queries.List(r.Context(), o)
	if errors.Is(err, read.ErrSort) {
		err = badRequestError{err}
	}
	if err != nil {
		return content{}, err
	}
	d := queriesData{
		Search: o.Search, Status: o.Status, Sort: o.Sort, Up: o.Up, Statuses: statuses, Sorts: sorts, Filtered: o.Search != "" || o.Status != "",
		Engines: o.Engine == "" && len(s.relay.Engines.Names()) > 1,
	}
	d.Rows = list.Audits
	d.Summary = fmt.Sprintf("%s.", plural(list.Total, "query", "queries"))
	if list.Total > perPage && len(d.Rows) > 0 {
		d.Summary = fmt.Sprintf("%d to %d of %d queries.", o.Offset+1, o.Offset+len(d.Rows), list.Total)
	}
	if page > 1 {
		d.Previous = pageURL(v, page-1)
	}
	if o.Offset+perPage < list.Total {
		d.Next = pageURL(v, page+1)
	}
	return content{"Queries: what is audited, and the verdicts.", d}, nil
}

// listOptions selects the first page of a search.
func listOptions(engine, search string) read.Filter {
	return read.Filter{Engine: engine, Search: search, Limit: perPage}
}

// claimAndBound names both figures of a bar.
func claimAndBound(claim, bound analysis.Float) string {
	text := "nothing claimed"
	if !math.IsNaN(float64(claim)) {
		text = fmt.Sprintf("claims %.4g", float64(claim))
	}
	if !(bound > 0) {
		return text + ", nothing proven"
	}
	return text + ", proven " + analysis.AtLeast(bound, claim)
}

func pageURL(v url.Values, page int) string {
	v.Set("page", strconv.Itoa(page))
	return "/queries?" + v.Encode()
}

// statusOf shows the status of a listed query.
func statusOf(name string) template.HTML {
	switch name {
	case read.StatusOpen:
		return badge(string(analysis.Violation))
	case read.StatusAccepted:
		return template.HTML(`<span class="badge quiet"><span aria-hidden="true">△</span> accepted violation</span>`)
	case read.StatusRunning:
		return badge("no verdict yet")
	case read.StatusUntried:
		return badge("not begun")
	}
	return badge(name)
}
