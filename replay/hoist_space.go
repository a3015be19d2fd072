package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/hoist"
)

const (
	// DefaultHoistBytes is what the hoisted tables of all sessions of a Player may take on the server's disk together.
	DefaultHoistBytes = 1 << 30
	// sessionShare is the part of it that one session may take.
	sessionShare = 4
	// rowOverhead is added to the size of a row's values and header: its pointer, and alignment.
	rowOverhead = 8
	// bytesSetting is the setting in which a transaction that makes tables adds up what it writes.
	bytesSetting = "dpwatch.hoisted_bytes"
)

// space counts the bytes that the hoisted tables of all sessions hold or may grow to.
type space struct {
	mu    sync.Mutex // guards used
	used  int64
	limit int64
}

// reserve takes up to want bytes, but never more than half of what is free, so that several sessions can make
// their tables at the same time; 0 = nothing to speak of is free. The caller gives back what it does not use.
func (s *space) reserve(want int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := min(want, (s.limit-s.used)/2)
	if got < min(want, s.limit/256) {
		return 0
	}
	s.used += got
	return got
}

func (s *space) release(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
}

// held returns the bytes that are taken.
func (s *space) held() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// make makes the tables on a session, and returns what gives their space back when the session has ended. It writes no more
// than the space that is reserved for them, and leaves nothing behind on an error.
func (h *hoisted) make(ctx context.Context, conn *pgconn.PgConn) (release func(), err error) {
	want := h.space.limit / sessionShare
	if size := h.size.Load(); size > 0 { // with room to grow
		want = min(want, size+size/2+h.space.limit/256)
	}
	quota := h.space.reserve(want)
	if quota == 0 {
		return nil, &unhoistable{reason: "the hoisted tables of all audits together have no space left (audit.hoist_space)", later: true}
	}
	size, err := h.fill(ctx, conn, quota)
	if err != nil {
		h.space.release(quota)
		if !conn.IsClosed() {
			_, _ = conn.Exec(ctx, "ROLLBACK").ReadAll() // the session is closed next, which does the same
		}
		return nil, err
	}
	for known := h.size.Load(); size > known && !h.size.CompareAndSwap(known, size); known = h.size.Load() {
	}
	kept := min(size, quota)
	h.space.release(quota - kept)
	return sync.OnceFunc(func() { h.space.release(kept) }), nil
}

// fill makes the tables in one transaction and returns their size.
func (h *hoisted) fill(ctx context.Context, conn *pgconn.PgConn, quota int64) (size int64, err error) {
	// Where a scan begins must not depend on what others scan: it is the order in which numbers are added up.
	if _, err := conn.Exec(ctx, "BEGIN READ WRITE; SET LOCAL synchronize_seqscans = off").ReadAll(); err != nil {
		return 0, refusal("a transaction that may make temporary tables", err)
	}
	const reset = "SELECT pg_catalog.set_config('" + bytesSetting + "', '0', true)"
	for _, piece := range h.pieces {
		description, err := conn.Prepare(ctx, "", piece.Query, h.oids)
		if err != nil {
			return 0, refusal("a hoisted part", err)
		}
		if _, err := conn.Exec(ctx, reset).ReadAll(); err != nil {
			return 0, refusal("a hoisted part", err)
		}
		sql := boundedTable(piece, description.Fields, quota-size)
		if _, err := conn.ExecParams(ctx, sql, h.values, h.oids, h.format, nil).Close(); err != nil {
			if overflow(err) {
				return 0, h.tooMuch(quota)
			}
			return 0, refusal("a hoisted part", err)
		}
		if _, err := conn.Exec(ctx, "ANALYZE pg_temp."+piece.Name).ReadAll(); err != nil {
			return 0, refusal("a hoisted part", err)
		}
		rows, err := ask(ctx, conn, "the size of a hoisted part", "SELECT pg_catalog.pg_total_relation_size($1::pg_catalog.regclass)", "pg_temp."+piece.Name)
		if err != nil {
			return 0, err
		}
		grown, err := strconv.ParseInt(string(rows[0][0]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the size of a hoisted part: %w", err)
		}
		if size += grown; size > max(quota, int64(len(h.pieces))*smallTable) {
			return 0, h.tooMuch(quota)
		}
	}
	if err := h.compare(ctx, conn); err != nil {
		return 0, err
	}
	if _, err := conn.Exec(ctx, "COMMIT").ReadAll(); err != nil {
		return 0, refusal("the hoisted parts", err)
	}
	return size, nil
}

// smallTable is what a table may take though a limit is lower: a few pages are the least that there is.
const smallTable = 64 << 10

// tooMuch says that the tables would exceed a quota. With a quota below a session's share it may be tried again.
func (h *hoisted) tooMuch(quota int64) error {
	return &unhoistable{
		reason: fmt.Sprintf("the tables would hold more than the %.4g MB that a session has (audit.hoist_space)", float64(quota)/(1<<20)),
		later:  quota < h.space.limit/sessionShare,
	}
}

// boundedTable returns the statement that makes the table of a piece, and fails as soon as the rows hold more than limit
// bytes. The planner's estimate of a row's width may be wrong by any factor, so the server adds up the sizes of the rows as it
// writes them, in a setting of the transaction, and chr(0) ends it with SQLSTATE 54000. (A window function could add up as
// well, and would not keep the server from parallel plans; but it reads all rows ahead when some are larger than work_mem.)
// OFFSET 0 keeps the piece a query of its own, which is planned as it stands, and the condition out of it.
func boundedTable(piece hoist.Piece, columns []pgconn.FieldDescription, limit int64) string {
	inner, outer := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		inner[i] = "c" + strconv.Itoa(i+1)
		outer[i] = inner[i] + " AS " + ident.Quote(c.Name)
	}
	alias := "p"
	if len(columns) > 0 {
		alias = "p (" + strings.Join(inner, ", ") + ")"
	}
	return fmt.Sprintf(`CREATE TEMPORARY TABLE %s ON COMMIT PRESERVE ROWS AS
		SELECT %s FROM (SELECT * FROM (%s) AS q OFFSET 0) AS %s
		WHERE pg_catalog.chr(CASE WHEN pg_catalog.set_config('%s', (pg_catalog.current_setting('%[5]s')::pg_catalog.int8
			+ pg_catalog.pg_column_size(p) + %d)::pg_catalog.text, true)::pg_catalog.int8 > %d THEN 0 ELSE 1 END) IS NOT NULL`,
		piece.Name, strings.Join(outer, ", "), piece.Query, alias, bytesSetting, rowOverhead, limit)
}

// overflow reports whether an error is that of boundedTable, not one of the piece.
func overflow(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "54000" && pg.Routine == "chr"
}
