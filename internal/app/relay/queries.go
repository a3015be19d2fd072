package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/app/querypage"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Limits of the details for pages.
const (
	pageTimeout = setup.LedgerTimeout
	maxDetails  = 32 // that are kept
	// detailsAge is how long details are shown again before they are read again.
	detailsAge = 3 * time.Second
)

// keptDetails are details that were read a short time ago.
type keptDetails struct {
	at time.Time
	d  read.Details
}

// Queries reads for pages the audits of queries, from the ledgers or, without one, from the auditors' memory, and has
// what an operator can do to one of them.
type Queries struct {
	configuration *Configuration
	engines       *Engines
	reader        reader
	log           *zap.Logger

	detailing chan struct{} // guards details; holds a value while they are read
	details   map[string]keptDetails

	reproduced atomic.Pointer[string] // id of the audit that is reproduced
	ending     context.Context        // ends with the relay
	end        context.CancelFunc
}

func newQueries(configuration *Configuration, engines *Engines, reader reader, log *zap.Logger) *Queries {
	qs := &Queries{
		configuration: configuration, engines: engines, reader: reader, log: log,
		detailing: make(chan struct{}, 1), details: map[string]keptDetails{},
	}
	qs.ending, qs.end = context.WithCancel(context.Background())
	return qs
}

// Details returns what the page of one query shows: the one whose id or key begins with id. Without values, it holds
// none. One process at a time reads it.
func (qs *Queries) Details(ctx context.Context, id string, values bool) (read.Details, error) {
	if qs.configuration.current.Load().AllEngines()[0].LedgerDSN() == "" {
		return qs.runningDetails(id, values)
	}
	key := fmt.Sprint(values, id)
	select {
	case qs.detailing <- struct{}{}:
		defer func() { <-qs.detailing }()
	case <-ctx.Done():
		return read.Details{}, ctx.Err()
	}
	if kept, ok := qs.details[key]; ok && time.Since(kept.at) < detailsAge {
		kept.d.Reproduces = qs.reproducing(kept.d.Audit.Key)
		return kept.d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	a, err := qs.reader.ask(ctx, querypage.Request{ID: id, Values: values})
	switch {
	case err != nil:
		return read.Details{}, err
	case a.Absent:
		return read.Details{}, fmt.Errorf("the ledger has %w %q: it may be older than ledger.retention", read.ErrNoAudit, id)
	case a.Request:
		return read.Details{}, RequestError{errors.New(a.Error)}
	case a.Details == nil:
		return read.Details{}, errors.New(a.Error)
	}
	if len(qs.details) >= maxDetails {
		clear(qs.details)
	}
	qs.details[key] = keptDetails{time.Now(), *a.Details}
	a.Details.Reproduces = qs.reproducing(a.Details.Audit.Key)
	return *a.Details, nil
}

// runningDetails returns what the status has of an audit, if there is no ledger.
func (qs *Queries) runningDetails(id string, values bool) (read.Details, error) {
	all, err := qs.engines.Snapshots("", values)
	if err != nil {
		return read.Details{}, err
	}
	var last error
	for _, s := range all {
		a, err := s.Audit(id)
		if err != nil {
			last = err
			continue
		}
		if !values {
			a.SQL = nil
		}
		d := read.NewDetails(read.Explain(a, nil), values)
		d.Note("There is no ledger: set ledger.dsn, and the history, the figures and who ran the query are kept.")
		return d, nil
	}
	return read.Details{}, last
}

// Decide accepts the violation of an audit, or ends its acceptance, as [Accept] does.
func (qs *Queries) Decide(ctx context.Context, o records.AcceptOptions) error {
	_, err := records.Accept(ctx, *qs.configuration.current.Load(), o)
	if err == nil {
		qs.forget()
		return nil
	}
	return errors.New(strings.NewReplacer("--until", "the date", "--reason", "the reason").Replace(err.Error()))
}

// Reaudit makes a decided audit begin again.
func (qs *Queries) Reaudit(ctx context.Context, id, operator string) error {
	ctx, cancel := context.WithTimeout(ctx, setup.LedgerTimeout)
	defer cancel()
	l, s, err := records.FindInLedgers(ctx, *qs.configuration.current.Load(), id)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := l.Actions.Reaudit(ctx, s.Engine, s.Key, operator, "asked on its page"); err != nil {
		return fmt.Errorf("audit %s: %w", s.ID(), err)
	}
	qs.forget()
	return nil
}

// forget makes the next pages read details again.
func (qs *Queries) forget() {
	qs.detailing <- struct{}{}
	clear(qs.details)
	<-qs.detailing
}
