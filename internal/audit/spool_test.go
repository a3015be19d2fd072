package audit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// spooled returns a rig whose auditors spool, and which cannot open its ledger before up is set.
func spooled(t *testing.T, limit int64) (l *ledgerRig, dir string, up *atomic.Bool) {
	t.Helper()
	dir, up = filepath.Join(t.TempDir(), "spool"), new(atomic.Bool)
	l = newLedgerRig(t, func(o *audit.Options) {
		open := o.Ledger
		o.Ledger = func(ctx context.Context) (*ledger.Engine, error) {
			if !up.Load() {
				return nil, errors.New("the ledger's server is down")
			}
			return open(ctx)
		}
		o.Spool = func() (*ledger.Spool, error) { return ledger.OpenSpool(dir, limit, false) }
		o.MaxAudits, o.PerShape, o.Workers = 10_000, 10_000, 0 // nothing but counts
	})
	return l, dir, up
}

// offer offers executions of different queries; it waits where the inbox would overflow.
func (l *ledgerRig) offer(t *testing.T, executions int) {
	t.Helper()
	l.offerOf(t, executions, 100)
}

// offerOf is offer with a number of different queries.
func (l *ledgerRig) offerOf(t *testing.T, executions, different int) {
	t.Helper()
	for i := range executions {
		l.Offer(query(fmt.Sprintf("SELECT noisy(count(*), 4) FROM people WHERE id < %d /*dp_epsilon='0.5'*/", i%different)))
		if i%1500 == 1499 {
			eventually.True(t, "the inbox has room", func() bool { return l.InboxLen() < 2500 }, func() any { return l.InboxLen() })
		}
	}
}

// counted returns the numbers of executions and of skipped statements in the ledger.
func (l *ledgerRig) counted(t *testing.T, conn *pgx.Conn) (executions, skipped int) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT coalesce((SELECT sum(executions) FROM dpwatch_ledger.queries), 0)::int,
		coalesce((SELECT sum(statements) FROM dpwatch_ledger.skipped), 0)::int`).Scan(&executions, &skipped)
	if err != nil {
		t.Fatal(err)
	}
	return executions, skipped
}

// TestSpool: executions that are captured while the ledger is away are counted once when it is back, though the auditor
// is replaced in between: before the ledger could ever be opened, and after it went away.
func TestSpool(t *testing.T) {
	t.Parallel()
	l, dir, up := spooled(t, 64<<20)
	stop := l.begin(t)
	l.offer(t, 9000)
	stop()
	if files, _ := filepath.Glob(filepath.Join(dir, "*.queries")); len(files) < 2 {
		t.Fatalf("%d files of queries, want several", len(files))
	}
	l.restart(t, nil)
	stop = l.begin(t)
	l.offer(t, 1000)
	up.Store(true)
	conn := pgtest.Connect(t, l.ledger.DSN)
	exactly := func(want int) {
		t.Helper()
		eventually.True(t, fmt.Sprintf("%d executions are counted", want), func() bool { n, skipped := l.counted(t, conn); return n == want && skipped == 0 },
			func() any { n, skipped := l.counted(t, conn); return []int{n, skipped} })
	}
	l.restored(t)
	exactly(10_000)

	pgtest.Exec(t, l.ledger.DSN, "ALTER TABLE dpwatch_ledger.queries RENAME TO gone")
	l.offer(t, 500)
	eventually.True(t, "observations are spooled", func() bool { return l.Status().Ledger.Spooled > 0 }, func() any { return l.Status().Ledger })
	stop()
	if files, _ := filepath.Glob(filepath.Join(dir, "*.batch")); len(files) == 0 {
		t.Fatal("no file of observations")
	}
	pgtest.Exec(t, l.ledger.DSN, "ALTER TABLE dpwatch_ledger.gone RENAME TO queries")
	l.restart(t, nil)
	stop = l.begin(t)
	defer stop()
	exactly(10_500)
	eventually.True(t, "the spool is empty", func() bool { return l.Status().Ledger.Spooled == 0 }, func() any { return l.Status().Ledger })
	if l.Status().Ledger.Lost != 0 {
		t.Errorf("%d lost", l.Status().Ledger.Lost)
	}
}

// TestSpoolOverflow: what a spool cannot take is counted as skipped, and a file that was submitted before is not
// submitted again.
func TestSpoolOverflow(t *testing.T) {
	t.Parallel()
	l, dir, up := spooled(t, 24<<10)
	stop := l.begin(t)
	l.offer(t, 9000)
	stop()
	kept := l.Status().Captured - l.Status().Skipped["backlog"]
	if kept != 0 || l.Status().Captured == 0 {
		t.Fatalf("%d captured, %d skipped before the ledger is back; want the overflow alone", l.Status().Captured, l.Status().Skipped["backlog"])
	}
	overflow := int(l.Status().Captured)
	l.restart(t, nil)
	up.Store(true)
	stop = l.begin(t)
	defer func() { stop() }()
	l.restored(t)
	conn := pgtest.Connect(t, l.ledger.DSN)
	eventually.True(t, "the others are counted", func() bool { n, skipped := l.counted(t, conn); return n == 9000-overflow && skipped == overflow },
		func() any { n, skipped := l.counted(t, conn); return []int{n, skipped, overflow} })

	stop()
	var file string
	if err := conn.QueryRow(t.Context(), "SELECT min(file) FROM dpwatch_ledger.spooled").Scan(&file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), ledger.Seal([]byte{1, 0}), 0o600); err != nil { // as if it could not be removed
		t.Fatal(err)
	}
	l.restart(t, nil)
	stop = l.begin(t)
	eventually.True(t, "the file is removed", func() bool { _, err := os.Stat(filepath.Join(dir, file)); return errors.Is(err, os.ErrNotExist) }, func() any { return file })
	if n, _ := l.counted(t, conn); n != 9000-overflow {
		t.Errorf("%d executions, want %d", n, 9000-overflow)
	}
}

// TestSpoolAttempts: a spooled query during which two auditor processes ended is skipped, and the others are counted.
func TestSpoolAttempts(t *testing.T) {
	t.Parallel()
	l, dir, up := spooled(t, 64<<20)
	stop := l.begin(t)
	l.offer(t, 100)
	stop()
	files, _ := filepath.Glob(filepath.Join(dir, "*.queries"))
	if len(files) != 1 {
		t.Fatalf("%d files of queries, want 1", len(files))
	}
	if err := os.WriteFile(filepath.Join(dir, "attempt"), fmt.Appendf(nil, "%s 40 2\n", filepath.Base(files[0])), 0o600); err != nil {
		t.Fatal(err)
	}
	up.Store(true)
	l.restart(t, nil)
	defer l.begin(t)()
	l.restored(t)
	conn := pgtest.Connect(t, l.ledger.DSN)
	eventually.True(t, "all but one are counted", func() bool { n, skipped := l.counted(t, conn); return n == 99 && skipped == 1 },
		func() any { n, skipped := l.counted(t, conn); return []int{n, skipped} })
	if n := l.Status().Skipped["internal_error"]; n != 1 {
		t.Errorf("%d statements are skipped as internal_error, want 1", n)
	}
}
