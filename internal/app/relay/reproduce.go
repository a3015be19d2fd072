package relay

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/app/querypage"
	"github.com/dpwatch/dpwatch/internal/app/setup"
)

// reproduceLimit ends a reproduction that a page has started.
const reproduceLimit = time.Hour

var errReproducing = errors.New("fresh trials of an audit run already: wait for their end, which the page of that query shows")

// Reproduce starts fresh trials of an audit in another process, as dpwatch audits reproduce does. The ledger has the
// result. There is one at a time.
func (qs *Queries) Reproduce(id, operator string) error {
	if qs.configuration.current.Load().AllEngines()[0].LedgerDSN() == "" {
		return RequestError{setup.ErrNoLedger}
	}
	if !qs.reproduced.CompareAndSwap(nil, &id) {
		return RequestError{errReproducing}
	}
	go func() {
		ctx, cancel := context.WithTimeout(qs.ending, reproduceLimit)
		defer cancel()
		a, err := qs.reader.ask(ctx, querypage.Request{ID: id, Reproduce: true, Operator: operator})
		if err == nil && a.Error != "" {
			err = errors.New(a.Error)
		}
		if err != nil {
			qs.log.Warn("an audit could not be reproduced", zap.String("audit", id), zap.Error(err))
		}
		qs.reproduced.Store(nil)
		qs.forget()
	}()
	return nil
}

// reproducing reports whether fresh trials of an audit run.
func (qs *Queries) reproducing(key string) bool {
	id := qs.reproduced.Load()
	return id != nil && len(*id) <= len(key) && key[:len(*id)] == *id
}
