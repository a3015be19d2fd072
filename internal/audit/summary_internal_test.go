package audit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/capture"
)

// TestSummary: a line at every interval, with the skipped statements.
func TestSummary(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.InfoLevel)
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Options{D1: []string{"d1"}, Logger: zap.New(core), Metrics: prometheus.NewRegistry(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		a.intake.use(func(d *desk.Desk) { d.Admission.Skip("too_many_audits", capture.Query{}) })
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		a.statuses.summarize(ctx, summaryEvery)
	})
	all := lines.FilterMessage("summary").All()
	if len(all) != 2 || all[1].ContextMap()["skipped"] != uint64(1) || all[1].ContextMap()["violations"] != int64(0) {
		t.Errorf("%+v; want two summaries with a skipped statement", all)
	}
}
