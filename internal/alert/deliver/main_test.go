package deliver_test

import (
	"bytes"
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// style is that of the tests: a violation by 2 or more is critical.
var style = alert.Style{Engine: "shop", Scale: finding.Scale{{Least: 0, Severity: finding.Warning}, {Least: 2, Severity: finding.Critical}}, Link: "http://dpwatch:9188", Runbook: "https://example.org/alerts.md"}

func violation() alert.Finding {
	return alert.Finding{
		Kind: finding.Violation, ID: "3f9c00000000", Group: "abc", Summary: "SELECT dp_count($1)", User: "ann", Database: "app", Application: "report", Neighbour: "d1", EngineEpoch: "e1",
		Epsilon: 0.5, Source: "argument", Lower: 1.25, Estimate: math.NaN(), Confidence: 0.95, Odds: math.NaN(),
	}
}

// start runs a Dispatcher until the test ends, or until the function that it returns is called.
func start(t *testing.T, o deliver.Options) (*deliver.Dispatcher, func()) {
	t.Helper()
	o.Style, o.Logger, o.Now = style, zap.NewNop(), time.Now
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Resend == 0 {
		o.Resend = time.Hour
	}
	o.ResolveAfter, o.Tick = time.Hour, 20*time.Millisecond
	d, err := deliver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	stop := sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return d, stop
}

// output is a standard output.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
