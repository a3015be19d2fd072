package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/app/querypage"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Limits of the process that reads an audit for a page.
const (
	pageTimeout   = setup.LedgerTimeout
	maxPageAnswer = 16 << 20
	maxDetails    = 32 // that are kept
	// detailsAge is how long details are shown again before they are read again.
	detailsAge = 3 * time.Second
)

// keptDetails are details that were read a short time ago.
type keptDetails struct {
	at time.Time
	d  read.Details
}

// Details returns what the page of one query shows: the one whose id or key begins with id. Without values, it holds
// none. One process at a time reads it.
func (r *Relay) Details(ctx context.Context, id string, values bool) (read.Details, error) {
	if r.current.Load().AllEngines()[0].LedgerDSN() == "" {
		return r.runningDetails(id, values)
	}
	key := fmt.Sprint(values, id)
	select {
	case r.detailing <- struct{}{}:
		defer func() { <-r.detailing }()
	case <-ctx.Done():
		return read.Details{}, ctx.Err()
	}
	if kept, ok := r.details[key]; ok && time.Since(kept.at) < detailsAge {
		kept.d.Reproduces = r.reproducing(kept.d.Audit.Key)
		return kept.d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	a, err := r.ask(ctx, querypage.Request{ID: id, Values: values})
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
	if len(r.details) >= maxDetails {
		clear(r.details)
	}
	r.details[key] = keptDetails{time.Now(), *a.Details}
	a.Details.Reproduces = r.reproducing(a.Details.Audit.Key)
	return *a.Details, nil
}

// runningDetails returns what the status has of an audit, if there is no ledger.
func (r *Relay) runningDetails(id string, values bool) (read.Details, error) {
	all, err := r.Snapshots("", values)
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

// ask runs the process for a page.
func (r *Relay) ask(ctx context.Context, q querypage.Request) (a querypage.Answer, err error) {
	q.Configuration = *r.resolved.Load()
	text, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	out := &boundedBuffer{most: maxPageAnswer}
	cmd := exec.CommandContext(ctx, r.binary, querypage.Command)
	cmd.Env, cmd.Stdin, cmd.Stdout = r.childEnv, bytes.NewReader(text), out // standard error may hold values: a panic's message
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		r.log.Warn("the process that reads an audit for a page failed", zap.Error(err))
		if ctx.Err() != nil {
			return a, errors.New("reading the audit took too long: the ledger or the shadow database answers slowly; try again")
		}
		return a, errors.New("the audit cannot be read: see dpwatch's log; dpwatch explain ID --config FILE reads it without a page")
	}
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return a, fmt.Errorf("the audit cannot be read: %w", err)
	}
	return a, nil
}

// boundedBuffer keeps the beginning of what is written.
type boundedBuffer struct {
	bytes.Buffer
	most int
}

// Write implements [io.Writer]. What exceeds the bound is dropped.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if left := b.most - b.Len(); left > 0 {
		b.Buffer.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}

var _ io.Writer = (*boundedBuffer)(nil)

// Decide accepts the violation of an audit, or ends its acceptance, as [Accept] does.
func (r *Relay) Decide(ctx context.Context, o records.AcceptOptions) error {
	_, err := records.Accept(ctx, *r.current.Load(), o)
	if err == nil {
		r.forget()
		return nil
	}
	return errors.New(strings.NewReplacer("--until", "the date", "--reason", "the reason").Replace(err.Error()))
}

// Reaudit makes a decided audit begin again.
func (r *Relay) Reaudit(ctx context.Context, id, operator string) error {
	ctx, cancel := context.WithTimeout(ctx, setup.LedgerTimeout)
	defer cancel()
	l, s, err := records.FindInLedgers(ctx, *r.current.Load(), id)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := l.Reaudit(ctx, s.Engine, s.Key, operator, "asked on its page"); err != nil {
		return fmt.Errorf("audit %s: %w", s.ID(), err)
	}
	r.forget()
	return nil
}

// forget makes the next pages read details again.
func (r *Relay) forget() {
	r.detailing <- struct{}{}
	clear(r.details)
	<-r.detailing
}
