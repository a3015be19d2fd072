package pages

import (
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// queriesData is the content of the list of queries.
type queriesData struct {
	Search, Status, Sort string
	Up                   bool
	Statuses, Sorts      []choice
	Rows                 []queryRow
	Summary              string
	Filtered             bool
	Engines              bool // rows name their engine
	Previous, Next       string
}

// choice is an option of a menu.
type choice struct{ Value, Name string }

// queryRow is a line of the list.
type queryRow struct {
	ID, Engine, Summary, Status string
	Claim, Bound                analysis.Float
	Trials, Executions          int64
	LastSeen                    time.Time
	Destinations                string // "" = the client
}

// perPage is the number of queries on a page.
const perPage = 50

var statuses = []choice{
	{"", "all"},
	{ledger.StatusOpen, "open violations"},
	{ledger.StatusAccepted, "accepted violations"},
	{ledger.StatusNoEvidence, "no evidence of a leak"},
	{ledger.StatusInconclusive, "inconclusive"},
	{ledger.StatusRunning, "no verdict yet"},
	{ledger.StatusUntried, "not begun"},
}

var sorts = []choice{
	{"", "violations first"},
	{"bound", "largest lower bound"},
	{"claim", "largest claim"},
	{"trials", "most trials"},
	{"executions", "most executions"},
	{"last", "latest run"},
	{"first", "latest first seen"},
	{"summary", "SQL, from the end"},
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
	o := ledger.ListOptions{
		Engine: v.Get("engine"), Search: v.Get("search"), Status: v.Get("status"), Sort: v.Get("sort"), Up: v.Get("up") != "", Limit: perPage, Offset: (page - 1) * perPage,
	}
	if len(o.Search) > maxSearch {
		return content{}, badRequestError{fmt.Errorf("search: must have at most %d bytes", maxSearch)}
	}
	list, err := s.relay.List(r.Context(), o)
	if errors.Is(err, ledger.ErrSort) {
		err = badRequestError{err}
	}
	if err != nil {
		return content{}, err
	}
	d := queriesData{
		Search: o.Search, Status: o.Status, Sort: o.Sort, Up: o.Up, Statuses: statuses, Sorts: sorts, Filtered: o.Search != "" || o.Status != "",
		Engines: o.Engine == "" && len(s.relay.EngineNames()) > 1,
	}
	for _, row := range list.Rows {
		d.Rows = append(d.Rows, queryRow{row.Key[:min(12, len(row.Key))], row.Engine, row.Summary, row.Status, float(row.Epsilon), float(row.Lower), row.Trials, row.Executions, row.LastSeen, read.DestinationsText(row.Destinations)})
	}
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
	return content{"Queries: what is audited, and what came of it.", d}, nil
}

// listOptions selects the first page of a search.
func listOptions(engine, search string) ledger.ListOptions {
	return ledger.ListOptions{Engine: engine, Search: search, Limit: perPage}
}

// claimAndBound names both figures of a bar.
func claimAndBound(claim, bound analysis.Float) string {
	text := "nothing claimed"
	if !math.IsNaN(float64(claim)) {
		text = fmt.Sprintf("claimed %.4g", float64(claim))
	}
	if !(bound > 0) {
		return text + ", no bound"
	}
	return text + ", " + atLeast(bound, claim)
}

func pageURL(v url.Values, page int) string {
	v.Set("page", strconv.Itoa(page))
	return "/queries?" + v.Encode()
}

func float(v *float64) analysis.Float {
	if v == nil {
		return analysis.Float(math.NaN())
	}
	return analysis.Float(*v)
}

// statusOf shows the status of a listed query.
func statusOf(name string) template.HTML {
	switch name {
	case ledger.StatusOpen:
		return badge(string(analysis.Violation))
	case ledger.StatusAccepted:
		return template.HTML(`<span class="badge quiet"><span aria-hidden="true">△</span> accepted violation</span>`)
	case ledger.StatusRunning:
		return badge("no verdict yet")
	case ledger.StatusUntried:
		return badge("not begun")
	}
	return badge(name)
}
