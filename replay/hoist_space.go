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
	"github.com/dpwatch/dpwatch/replay/hoist"
)

const (
	// DefaultHoistBytes bounds the disk space on the server of the hoisted tables of all sessions of a Player together.
	DefaultHoistBytes = 1 << 30
	// A session may use 1/sessionShare of the space.
	sessionShare = 4
	// rowOverhead is added to the size of a row's values and header: its line pointer, and alignment.
	rowOverhead = 8
	// bytesSetting is the setting in which a transaction that creates tables counts the bytes that it writes.
	bytesSetting = "dpwatch.hoisted_bytes"
)

// space counts the bytes that the hoisted tables of all sessions hold or have reserved.
type space struct {
	mu    sync.Mutex // guards used
	used  int64
	limit int64
}

// reserve reserves up to want bytes, but at most half of the free space, so that several sessions can create their
// tables at the same time. It returns the number of bytes: 0 if that would be less than both want and 1/256 of the
// limit. The caller releases the bytes that it does not use.
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

// release returns reserved bytes.
func (s *space) release(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
}

// make creates the tables on a session. The caller calls release, which returns their space, when the session has
// ended. make writes no more than the reserved space. On an error the tables are gone when the session is closed.
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
			_, _ = conn.Exec(ctx, "ROLLBACK").ReadAll() // ignored: the session is closed next, which also rolls back
		}
		return nil, err
	}
	for known := h.size.Load(); size > known && !h.size.CompareAndSwap(known, size); known = h.size.Load() {
	}
	kept := min(size, quota)
	h.space.release(quota - kept)
	return sync.OnceFunc(func() { h.space.release(kept) }), nil
}

// fill creates the tables in one transaction and returns their size.
func (h *hoisted) fill(ctx context.Context, conn *pgconn.PgConn, quota int64) (size int64, err error) {
	// Every scan must start at the first block, whatever other sessions scan: the order of the rows is the order in
	// which floating-point numbers are added.
	if _, err := conn.Exec(ctx, "BEGIN READ WRITE; SET LOCAL synchronize_seqscans = off").ReadAll(); err != nil {
		return 0, serverReason("beginning a transaction for temporary tables", err)
	}
	const reset = "SELECT pg_catalog.set_config('" + bytesSetting + "', '0', true)"
	for _, piece := range h.pieces {
		description, err := conn.Prepare(ctx, "", piece.Query, h.oids)
		if err != nil {
			return 0, serverReason("creating a table for a deterministic part", err)
		}
		if _, err := conn.Exec(ctx, reset).ReadAll(); err != nil {
			return 0, serverReason("creating a table for a deterministic part", err)
		}
		sql := boundedTable(piece, description.Fields, quota-size)
		if _, err := conn.ExecParams(ctx, sql, h.values, h.oids, h.format, nil).Close(); err != nil {
			if overflow(err) {
				return 0, h.tooMuch(quota)
			}
			return 0, serverReason("creating a table for a deterministic part", err)
		}
		if _, err := conn.Exec(ctx, "ANALYZE pg_temp."+piece.Name).ReadAll(); err != nil {
			return 0, serverReason("creating a table for a deterministic part", err)
		}
		answer, err := askRow(ctx, conn, "read the size of a hoisted table", 1, "SELECT pg_catalog.pg_total_relation_size($1::pg_catalog.regclass)", "pg_temp."+piece.Name)
		if err != nil {
			return 0, err
		}
		grown, err := strconv.ParseUint(string(answer[0]), 10, 62)
		if err != nil {
			return 0, unexpectedAnswer("read the size of a hoisted table", "something else than a size")
		}
		if size += int64(grown); size > max(quota, int64(len(h.pieces))*smallTable) {
			return 0, h.tooMuch(quota)
		}
	}
	if err := h.compare(ctx, conn); err != nil {
		return 0, err
	}
	if _, err := conn.Exec(ctx, "COMMIT").ReadAll(); err != nil {
		return 0, serverReason("committing the tables of the deterministic parts", err)
	}
	return size, nil
}

// smallTable is the size up to which a table is allowed even if a limit is lower: a table takes at least a few pages.
const smallTable = 64 << 10

// tooMuch returns the reason that the tables would exceed a quota. If the quota is below a session's share, the
// decision is repeated later.
func (h *hoisted) tooMuch(quota int64) error {
	return &unhoistable{
		reason: fmt.Sprintf("the tables would take more than the %.4g MB that a session may use (audit.hoist_space)", float64(quota)/(1<<20)),
		later:  quota < h.space.limit/sessionShare,
	}
}

// boundedTable returns the statement that creates the table of a piece and fails as soon as the rows hold more than
// limit bytes. The planner's estimate of a row's width may be wrong by any factor, so the server adds up the sizes of
// the rows as it writes them, in a setting of the transaction, and chr(0) ends the statement with SQLSTATE 54000. (A
// window function could add up as well and would allow parallel plans, but it reads all rows ahead when some are larger
// than work_mem.) OFFSET 0 keeps the piece a subquery that is planned as it is, and keeps the condition out of it.
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

// overflow reports whether an error is that of boundedTable for too many bytes, and not one of the piece.
func overflow(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "54000" && pg.Routine == "chr"
}
