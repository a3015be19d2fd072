package pages

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/app/relay"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/web"
)

//go:embed *.html static
var files embed.FS

// policy allows a page what this server sends: no inline script or style, no other origin.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// site serves the pages.
type site struct {
	relay     *relay.Relay
	log       *zap.Logger
	templates map[string]*template.Template // by name
	mux       *web.Mux
}

// New returns the pages of a relay.
func New(r *relay.Relay, log *zap.Logger) (*Pages, error) {
	s := &site{relay: r, log: log.Named("pages"), templates: map[string]*template.Template{}, mux: &web.Mux{}}
	if err := s.parse(); err != nil {
		return nil, err
	}
	static, err := fs.Sub(files, "static")
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	s.mux.Handle("GET /static/", http.StripPrefix("/static/", cached(http.FileServerFS(static))))
	s.mux.Handle("GET /static/chart.css", cached(http.HandlerFunc(chartStyle)))
	s.mux.HandleFunc("GET "+web.EventsPath, func(w http.ResponseWriter, q *http.Request) { web.Events(w, q, r.Engines.Version) })
	s.mux.HandleFunc("GET /login", s.page("login", s.login))
	s.mux.HandleFunc("GET /{$}", s.page("overview", s.overview))
	s.mux.HandleFunc("GET /queries", s.page("queries", s.queries))
	s.mux.HandleFunc("GET /queries/{id}", s.page("query", s.query))
	s.mux.HandleFunc("GET /queries/{id}/profile", s.page("profile", s.profile))
	s.mux.HandleFunc("POST /queries/{id}/reproduce", s.act("reproduce", s.reproduce))
	s.mux.HandleFunc("POST /queries/{id}/reaudit", s.act("reaudit", s.reaudit))
	s.mux.HandleFunc("POST /queries/{id}/accept", s.act("accept", s.accept))
	s.mux.HandleFunc("POST /queries/{id}/revoke", s.act("revoke", s.revoke))
	s.mux.HandleFunc("GET /coverage", s.page("sections", s.coverage))
	s.mux.HandleFunc("GET /budgets", s.page("sections", s.budgets))
	s.mux.HandleFunc("GET /alerts", s.page("sections", s.alerts))
	s.mux.HandleFunc("POST /alerts/{id}/retry", s.retryAlert)
	s.mux.HandleFunc("GET /jobs", s.page("sections", s.jobs))
	s.mux.HandleFunc("POST /jobs/pause", s.pause(true))
	s.mux.HandleFunc("POST /jobs/resume", s.pause(false))
	s.mux.HandleFunc("POST /jobs/deploy", s.deploy)
	s.mux.HandleFunc("GET /causes", s.page("causes", s.causes))
	s.mux.HandleFunc("GET /settings", s.page("sections", s.settings))
	s.mux.HandleFunc("/", s.page("error", func(*http.Request) (content, error) { return content{}, errNoPage }))
	return &Pages{secured(s.mux), s.mux.Patterns()}, nil
}

// Pages are the pages, and the patterns of their routes.
type Pages struct {
	http.Handler
	Patterns []string
}

// navigation are the pages that every page links to.
var navigation = []link{
	{"/", "Overview"}, {"/queries", "Queries"}, {"/coverage", "Coverage"}, {"/budgets", "Budgets"}, {"/alerts", "Alerts"}, {"/jobs", "Jobs"}, {"/settings", "Settings"},
}

type link struct{ Path, Name string }

// content is what a page shows. Title is a sentence, without markup.
type content struct {
	Title string
	Data  any // for the template
}

// frame is what is around the content of a page.
type frame struct {
	content
	Path       string
	Navigation []link
	Identity   web.Identity
	Engine     string // that the page is about; "" = all
	Engines    []string
	Version    string
	Status     int
}

// Operator reports whether the page may have actions.
func (f *frame) Operator() bool { return f.Identity.Roles&web.Operator != 0 }

// At returns the path with the engine of the page.
func (f *frame) At(path string) string {
	if f.Engine == "" {
		return path
	}
	return path + "?" + url.Values{"engine": {f.Engine}}.Encode()
}

var errNoPage = errors.New("there is no page with this address: the menu has all pages")

// parse reads the templates: each with the layout.
func (s *site) parse() error {
	names, err := fs.Glob(files, "*.html")
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == "layout.html" {
			continue
		}
		t, err := template.New("layout.html").Funcs(functions).ParseFS(files, "layout.html", name)
		if err != nil {
			return fmt.Errorf("pages: %w", err)
		}
		s.templates[strings.TrimSuffix(name, ".html")] = t
	}
	return nil
}

// page returns the handler of a page.
func (s *site) page(name string, build func(*http.Request) (content, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := build(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.render(w, r, name, http.StatusOK, c)
	}
}

// fail shows an error.
func (s *site) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, errNoPage), errors.Is(err, read.ErrNoAudit):
		code = http.StatusNotFound
	case errors.As(err, new(badRequestError)), errors.As(err, new(relay.RequestError)):
		code = http.StatusBadRequest
	}
	s.render(w, r, "error", code, content{Title: "This page cannot be shown.", Data: sentence(err)})
}

// values reports whether the answer to a request may show values of rows.
func values(r *http.Request) bool { return web.MayReadValues(r.Context()) }

// badRequestError is the error of a request that is at fault itself.
type badRequestError struct{ error }

// render writes a page, or nothing of it.
func (s *site) render(w http.ResponseWriter, r *http.Request, name string, code int, c content) {
	f := frame{
		content: c, Path: r.URL.Path, Navigation: navigation, Identity: web.IdentityOf(r.Context()), Engine: r.URL.Query().Get("engine"),
		Engines: s.relay.Engines.Names(), Version: setup.Version, Status: code,
	}
	var b bytes.Buffer
	if err := s.templates[name].Execute(&b, &f); err != nil {
		s.log.Error("render a page", zap.String("page", name), zap.Error(err))
		http.Error(w, "dpwatch: this page cannot be rendered: see dpwatch's log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes())
}

// secured sets the headers of all answers.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// cached lets browsers keep files for a while: they change with the version alone.
// chartStyle serves the style sheet of charts, which reports have too.
func chartStyle(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "chart.css", time.Time{}, strings.NewReader(chart.CSS))
}

func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=300")
		next.ServeHTTP(w, r)
	})
}
