package replay

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// sums holds a checksum for the rows of each table, as the first session made them. Every session computes its tables anew, so
// that a part that is not the same each time, since a function in it is declared IMMUTABLE or STABLE and is not, shows in the
// next one. Rows are compared as a multiset, by their number and the sum of hashes of 64 bits of their text.
type sums struct {
	mu    sync.Mutex // guards first
	first []string   // by piece; nil = no session has made the tables yet
}

// compare computes the checksums of the tables of a session, within the transaction that made them, and compares them with those
// of the first one. A difference is an *unhoistable with rows.
func (h *hoisted) compare(ctx context.Context, conn *pgconn.PgConn) error {
	// Numbers are to be compared to their last digit, whatever the client's session prints.
	if _, err := conn.Exec(ctx, "SET LOCAL extra_float_digits = 3").ReadAll(); err != nil {
		return refusal("the comparison of hoisted parts", err)
	}
	all := make([]string, len(h.pieces))
	for i, piece := range h.pieces {
		rows, err := ask(ctx, conn, "compare hoisted parts",
			"SELECT pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtextextended(dpwatch_row::pg_catalog.text, 0)) FROM pg_temp."+piece.Name+" AS dpwatch_row")
		if err != nil {
			return err
		}
		all[i] = string(rows[0][0]) + " " + string(rows[0][1])
	}
	h.sums.mu.Lock()
	defer h.sums.mu.Unlock()
	if h.sums.first == nil {
		h.sums.first = all
		return nil
	}
	if slices.Equal(all, h.sums.first) {
		return nil
	}
	for i := range all {
		if all[i] != h.sums.first[i] {
			rows := "the rows of a part on D" + worldOf(h.pieces[i].Name)
			return &unhoistable{rows: rows, reason: rows + " differ between two sessions: a function in it is declared IMMUTABLE or STABLE and is not, or the data changed"}
		}
	}
	return nil
}

// worldOf returns the number of the world that a table's name begins with.
func worldOf(name string) string {
	world, _, _ := strings.Cut(strings.TrimPrefix(name, hoistPrefix), "_")
	if _, err := strconv.Atoi(world); err != nil {
		return "?"
	}
	return world
}

// hoistPrefix begins the names of all tables.
const hoistPrefix = "dpwatch_hoist_"

// prefixOf begins the names of the tables of a world.
func prefixOf(world int) string { return fmt.Sprintf("%s%d_", hoistPrefix, world) }
