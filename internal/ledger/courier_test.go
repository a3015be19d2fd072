package ledger_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// post is a ledger with receivers that accept every message, unless refuse says otherwise.
type post struct {
	*ledger.Ledger
	dsn string

	mu     sync.Mutex
	bodies []string // that were sent
	faults []error
	fault  error // the present one
	refuse error
}

func newPost(t *testing.T) *post {
	t.Helper()
	o := ledger.Options{DSN: pgtest.Database(t), Connections: 4}
	if _, _, err := ledger.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return &post{Ledger: l, dsn: o.DSN}
}

// run delivers messages until the function that it returns is called, or the test ends.
func (p *post) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- p.Alerts.Deliver(ctx, ledger.DeliverOptions{
			Engine: "e", Slots: 2, Every: 20 * time.Millisecond, Logger: zap.NewNop(),
			Send: func(_ context.Context, d ledger.Delivery) error {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.bodies = append(p.bodies, string(d.Body))
				return p.refuse
			},
			Heard: func(err error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.fault = err; err != nil {
					p.faults = append(p.faults, err)
				}
			},
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (p *post) sent() (bodies []string, faults []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(bodies, p.bodies...), append(faults, p.faults...)
}

func (p *post) save(t *testing.T, id, body string) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Microsecond)
	a := ledger.Alert{ID: id, Engine: "e", Subject: id, Kind: "violation", Severity: "error", Status: "firing", Title: "t", StartsAt: now, Updated: now, Body: []byte(body)}
	if err := p.Alerts.Save(t.Context(), a, []string{"r"}); err != nil {
		t.Fatal(err)
	}
}

// states returns the states of the messages about an alert, and of its deliveries as a whole.
func (p *post) states(t *testing.T, id string) string {
	t.Helper()
	_, all, err := p.Alerts.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, d := range all {
		states = append(states, d.State)
	}
	return strings.Join(states, " ")
}

// hostile are messages whose JSON has escapes.
var hostile = []string{`{"s":"AS \"n\" FROM \"users\""}`, `{"s":"budget\u001fb\u001fann"}`, `{"s":"\u0000 \\ \\x41 \\101 \u00e4"}`}

// TestAnyMessage: a message arrives as it was stored, whatever escapes its JSON has, and the lists of alerts show it.
func TestAnyMessage(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	for i, body := range hostile {
		p.save(t, string(rune('a'+i)), body)
	}
	firing, err := p.Alerts.Firing(t.Context(), "e")
	if err != nil || len(firing) != len(hostile) {
		t.Fatalf("%d alerts, %v", len(firing), err)
	}
	for i, a := range firing {
		if string(a.Body) != hostile[i] || a.Pending != 1 {
			t.Errorf("alert %+v", a)
		}
	}
	if u, err := p.Alerts.Undelivered(t.Context(), "e"); err != nil || len(u) != 1 || u[0].Pending != len(hostile) || u[0].Oldest <= 0 {
		t.Errorf("undelivered: %+v, %v", u, err)
	}
	p.run(t)
	eventually.True(t, "all are delivered", func() bool {
		return p.states(t, "a")+p.states(t, "b")+p.states(t, "c") == "delivereddelivereddelivered"
	})
	bodies, faults := p.sent()
	if len(bodies) != len(hostile) || len(faults) > 0 {
		t.Errorf("sent %q, faults %v", bodies, faults)
	}
	if u, err := p.Alerts.Undelivered(t.Context(), "e"); err != nil || len(u) > 0 {
		t.Errorf("undelivered in the end: %+v, %v", u, err)
	}
}

// failing makes the ledger fail to store the result of a delivery.
const failing = `CREATE FUNCTION dpwatch_ledger.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.attempts > OLD.attempts THEN RAISE 'full'; END IF; RETURN NEW; END $$;
	CREATE TRIGGER fail BEFORE UPDATE ON dpwatch_ledger.deliveries FOR EACH ROW EXECUTE FUNCTION dpwatch_ledger.fail()`

// TestResultNotStored: while the result of the last attempt cannot be stored, the job stays, the message is not sent
// again, the fault is reported, and the next message about the alert waits; afterwards both are delivered.
func TestResultNotStored(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.refuse = errors.New("503")
	p.save(t, "a", `{"n":1}`)
	pgtest.Exec(t, p.dsn, "UPDATE dpwatch_ledger.deliveries SET attempts = 11") // the next one is the last
	pgtest.Exec(t, p.dsn, failing)
	p.run(t)
	eventually.True(t, "a fault is reported", func() bool { _, faults := p.sent(); return len(faults) > 0 })
	p.save(t, "a", `{"n":2}`)
	if s := p.states(t, "a"); s != "pending pending" {
		t.Fatalf("states %s", s)
	}
	p.mu.Lock()
	p.refuse = nil
	p.mu.Unlock()
	pgtest.Exec(t, p.dsn, "DROP TRIGGER fail ON dpwatch_ledger.deliveries")
	eventually.True(t, "the first has failed, the second is delivered", func() bool { return p.states(t, "a") == "failed delivered" })
	if bodies, _ := p.sent(); len(bodies) != 2 {
		t.Errorf("sent %q; want each once", bodies)
	}
	eventually.True(t, "no fault in the end", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.fault == nil
	})
}

// TestPendingWithoutJob: a pending message whose job is gone gets another one, at the start and later, and so does not
// hold up the next one.
func TestPendingWithoutJob(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.save(t, "a", `{"n":1}`)
	q := newQueue(t, p.dsn)
	for _, job := range q.jobs(t, "alert") {
		if _, err := q.JobDelete(t.Context(), job.ID); err != nil {
			t.Fatal(err)
		}
	}
	p.save(t, "a", `{"n":2}`)
	p.run(t)
	eventually.True(t, "both are delivered", func() bool { return p.states(t, "a") == "delivered delivered" })
	pgtest.Exec(t, p.dsn, `INSERT INTO dpwatch_ledger.deliveries (alert, receiver, body) VALUES ('a', 'r', '{"n":3}')`)
	eventually.True(t, "a message without a job is delivered while Deliver runs", func() bool { return p.states(t, "a") == "delivered delivered delivered" })
	if bodies, faults := p.sent(); strings.Join(bodies, "") != `{"n":1}{"n":2}{"n":3}` || len(faults) > 0 {
		t.Errorf("sent %q, faults %v", bodies, faults)
	}
}

// TestSenderKilled: a message whose process was killed while it sent it is sent again when the next process starts.
func TestSenderKilled(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.save(t, "a", `{"n":1}`)
	startChild(t, "alert", p.dsn)()
	p.run(t)
	eventually.True(t, "it is delivered", func() bool { return p.states(t, "a") == "delivered" })
	if bodies, faults := p.sent(); len(bodies) != 1 || len(faults) > 0 {
		t.Errorf("sent %q, faults %v", bodies, faults)
	}
	if s := newQueue(t, p.dsn).states(t, "alert"); s != "running completed" {
		t.Errorf("jobs are %s; want the first one running until a leader ends it", s)
	}
}
