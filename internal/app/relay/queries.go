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
	// Details, and those with the privacy profile, are shown again for so long before they are read again.
	detailsAge = 3 * time.Second
	profileAge = time.Minute
)

// detailed are details of one kind that were read a short time ago, by id and by whether they have values.
type detailed struct {
	reading chan struct{} // holds a value while one is read; guards kept
	kept    map[string]keptDetails
	profile bool          // they have the privacy profile
	age     time.Duration // after which they are read again
}

func newDetailed(profile bool, age time.Duration) *detailed {
	return &detailed{reading: make(chan struct{}, 1), kept: map[string]keptDetails{}, profile: profile, age: age}
}

// keptDetails are details that were read a short time ago.
type keptDetails struct {
	at     time.Time
	change uint64 // of Queries
	d      read.Details
}

// Queries reads for pages the audits of queries, from the ledgers or, without one, from the auditors' memory, and has
// what an operator can do to one of them.
type Queries struct {
	configuration *Configuration
	engines       *Engines
	reader        reader
	log           *zap.Logger

	quick, slow *detailed     // without and with the privacy profile, which takes time: the first do not wait for the second
	change      atomic.Uint64 // counts what people did: details that were read before are outdated

	reproduced atomic.Pointer[string] // id of the audit that is reproduced
	ending     context.Context        // ends with the relay
	end        context.CancelFunc
}

func newQueries(configuration *Configuration, engines *Engines, reader reader, log *zap.Logger) *Queries {
	qs := &Queries{
		configuration: configuration, engines: engines, reader: reader, log: log,
		quick: newDetailed(false, detailsAge), slow: newDetailed(true, profileAge),
	}
	qs.ending, qs.end = context.WithCancel(context.Background())
	return qs
}

// Details returns what the page of one query shows: the one whose id or key begins with id. Without values, it holds
// none. One process at a time reads it. It has no privacy profile.
func (qs *Queries) Details(ctx context.Context, id string, values bool) (read.Details, error) {
	return qs.read(ctx, qs.quick, id, values)
}

// Profiled returns the same with the privacy profile, which takes time. One more process at a time reads it.
func (qs *Queries) Profiled(ctx context.Context, id string, values bool) (read.Details, error) {
	return qs.read(ctx, qs.slow, id, values)
}

func (qs *Queries) read(ctx context.Context, of *detailed, id string, values bool) (read.Details, error) {
	if qs.configuration.current.Load().AllEngines()[0].LedgerDSN() == "" {
		return qs.runningDetails(id, values)
	}
	key := fmt.Sprint(values, id)
	select {
	case of.reading <- struct{}{}:
		defer func() { <-of.reading }()
	case <-ctx.Done():
		return read.Details{}, ctx.Err()
	}
	change := qs.change.Load()
	if kept, ok := of.kept[key]; ok && time.Since(kept.at) < of.age && kept.change == change {
		kept.d.Reproduces = qs.reproducing(kept.d.Audit.Key)
		return kept.d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	a, err := qs.reader.ask(ctx, querypage.Request{ID: id, Values: values, Profile: of.profile})
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
	if len(of.kept) >= maxDetails {
		clear(of.kept)
	}
	of.kept[key] = keptDetails{time.Now(), change, *a.Details}
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
func (qs *Queries) forget() { qs.change.Add(1) }
