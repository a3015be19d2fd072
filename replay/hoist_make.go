package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/replay/hoist"
)

// unhoistable is the reason why a query, or one way to split it, is not hoisted.
type unhoistable struct {
	reason string
	later  bool // the reason may no longer hold later in the audit
	// rows names a part that gave other rows in another session, and its world; "" if none did.
	rows string
}

func (e *unhoistable) Error() string { return e.reason }

// hoisted is a query split for every world.
type hoisted struct {
	pieces []hoist.Piece // of all worlds
	rests  []string      // by world
	values [][]byte
	oids   []uint32
	format []int16
	space  *space
	sums   sums
	size   atomic.Int64 // bytes of the tables of a session, the largest so far; 0 before the first
	// together reports whether several trials may share a transaction and stay independent.
	together bool
}

// splitQuery returns the split that hoists most of those that work on the shadow database, for all worlds. If none
// works, the error is an *unhoistable.
func (p *Player) splitQuery(ctx context.Context, r *Run, noise []string) (*hoisted, error) {
	worlds := r.exec.stmt.Worlds
	conn, err := p.connect(ctx, r.exec.stmt)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	granted, err := askRow(ctx, conn, "check the privilege TEMPORARY", 2,
		"SELECT pg_catalog.current_database(), pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY')")
	if err != nil {
		return nil, err
	}
	if !isTrue(granted[1]) {
		return nil, &unhoistable{reason: fmt.Sprintf("the replay role cannot create temporary tables: GRANT TEMPORARY ON DATABASE %s TO it to make trials faster",
			ident.Quote(string(granted[0])))}
	}
	know, err := knowledge(ctx, conn, noise, worlds...)
	if err != nil {
		return nil, err
	}
	reason := &unhoistable{}
	tried := map[string]bool{}
	for _, opt := range []hoist.Options{
		{},
		{NoSubLinks: true},
		{NoSplit: true},
		{NoSubLinks: true, NoSplit: true},
	} {
		opt.Knowledge = know
		h, err := split(worlds, opt, r.exec.stmt.Hoist.Announce)
		if err == nil && !tried[h.rests[0]] {
			tried[h.rests[0]] = true
			err = p.rehearse(ctx, r, worlds, know, h)
			if err == nil {
				return h, nil
			}
		}
		var no *unhoistable
		switch {
		case errors.As(err, &no):
			if reason.reason == "" {
				reason = no
			}
		case err != nil:
			return nil, err
		}
	}
	return nil, reason
}

// split splits the text of every world. It calls announce before each split and the function that announce returned
// after it.
func split(worlds []string, opt hoist.Options, announce func() func()) (*hoisted, error) {
	h := &hoisted{together: true}
	for i, sql := range worlds {
		opt.Prefix = prefixOf(i)
		done := announce()
		plan, err := hoist.Split(sql, opt)
		together := err == nil && len(plan.Pieces) > 0 && hoist.Together(plan.Rest, opt.Knowledge)
		done()
		switch {
		case err != nil:
			return nil, &unhoistable{reason: err.Error()}
		case len(plan.Pieces) == 0:
			return nil, &unhoistable{reason: plan.Reason}
		}
		h.pieces = append(h.pieces, plan.Pieces...)
		h.rests = append(h.rests, plan.Rest)
		h.together = h.together && together
	}
	return h, nil
}

// rehearse creates the tables once and checks that the random part returns the same columns as the query, and has a
// plan like it.
func (p *Player) rehearse(ctx context.Context, r *Run, worlds []string, know hoist.Knowledge, h *hoisted) (err error) {
	conn, err := p.connectLimited(ctx, r.exec.stmt)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	defer func() { r.exec.by.noteOf(conn, unknownWorld, err) }()
	want := make([]*pgconn.StatementDescription, len(worlds))
	for i, sql := range worlds {
		if want[i], err = conn.Prepare(ctx, "", sql, r.exec.oids); err != nil {
			return serverReason("preparing the query", err)
		}
	}
	// The parts get the parameter types that the server inferred for the whole query: a part may not determine them.
	h.values, h.format, h.oids, h.space = r.exec.values, r.exec.format, want[0].ParamOIDs, &p.space
	if err := h.affordable(ctx, conn); err != nil {
		return err
	}
	release, err := h.make(ctx, conn)
	if err != nil {
		return err
	}
	defer release()
	for i, sql := range h.rests {
		got, err := conn.Prepare(ctx, "", sql, h.oids)
		if err != nil {
			return serverReason("preparing the random part", err)
		}
		if !slices.EqualFunc(want[i].Fields, got.Fields, sameColumn) {
			return &unhoistable{reason: "the random part would return columns of other names or types"}
		}
	}
	return h.comparePlans(ctx, conn, worlds, know, r.exec.stmt.Named)
}

func sameColumn(a, b pgconn.FieldDescription) bool {
	return a.Name == b.Name && a.DataTypeOID == b.DataTypeOID && a.TypeModifier == b.TypeModifier
}

// affordable asks the planner for the size of the tables and rejects estimates above the limit. A piece that reads
// another one cannot be estimated.
func (h *hoisted) affordable(ctx context.Context, conn *pgconn.PgConn) error {
	var total float64
	for _, piece := range h.pieces {
		result := conn.ExecParams(ctx, "EXPLAIN (FORMAT JSON) "+piece.Query, h.values, h.oids, h.format, nil).Read()
		if result.Err != nil {
			continue // creating the table reports the error
		}
		var plans []struct {
			Plan struct {
				Rows  float64 `json:"Plan Rows"`
				Width float64 `json:"Plan Width"`
			} `json:"Plan"`
		}
		if len(result.Rows) == 1 && len(result.Rows[0]) == 1 && json.Unmarshal(result.Rows[0][0], &plans) == nil && len(plans) == 1 {
			total += plans[0].Plan.Rows * (plans[0].Plan.Width + 28) // 28: a row's header and its pointer
		}
	}
	if most := float64(h.space.limit / sessionShare); total > most {
		return &unhoistable{reason: fmt.Sprintf("the tables would take about %.0f MB, more than the %.4g MB that a session may use (audit.hoist_space)", total/(1<<20), most/(1<<20))}
	}
	return nil
}

// serverReason turns a server error into an unhoistable, and any other error into a transient one. what names the
// operation.
func serverReason(what string, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || loses(err) {
		return &transientError{op: "hoist", err: err, lost: loses(err)}
	}
	// The message may contain literals of the query, so only the code is used.
	return &unhoistable{reason: fmt.Sprintf("%s failed on the server (%s)", what, sqlstate.Describe(pg.Code))}
}
