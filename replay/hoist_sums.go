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

// sums holds a checksum of the rows of each table of the first session. Every session creates its tables itself, so if
// a part is not deterministic, because a function in it is wrongly declared IMMUTABLE or STABLE, the next session finds
// other rows. Rows are compared as a multiset: by their number and the sum of 64-bit hashes of their text.
type sums struct {
	mu    sync.Mutex // guards first
	first []string   // by piece; nil before the first session
}

// compare computes the checksums of a session's tables, in the transaction that created them, and compares them with
// those of the first session. For a difference the error is an *unhoistable with rows set.
func (h *hoisted) compare(ctx context.Context, conn *pgconn.PgConn) error {
	// Without this, the client's setting decides how many digits of a number are compared.
	if _, err := conn.Exec(ctx, "SET LOCAL extra_float_digits = 3").ReadAll(); err != nil {
		return serverReason("comparing the rows of deterministic parts", err)
	}
	all := make([]string, len(h.pieces))
	for i, piece := range h.pieces {
		answer, err := askRow(ctx, conn, "compare the rows of deterministic parts", 1,
			"SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtextextended(dpwatch_row::pg_catalog.text, 0))) FROM pg_temp."+piece.Name+" AS dpwatch_row")
		if err != nil {
			return err
		}
		all[i] = string(answer[0])
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

// worldOf returns the number of the world from the name of a table.
func worldOf(name string) string {
	world, _, _ := strings.Cut(strings.TrimPrefix(name, hoistPrefix), "_")
	if _, err := strconv.Atoi(world); err != nil {
		return "?"
	}
	return world
}

// hoistPrefix begins the names of all hoisted tables.
const hoistPrefix = "dpwatch_hoist_"

// prefixOf returns the prefix of the table names of a world.
func prefixOf(world int) string { return fmt.Sprintf("%s%d_", hoistPrefix, world) }
