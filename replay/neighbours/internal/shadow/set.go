package shadow

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// Retire marks a set as old: its schemas become leftovers.
func (s *DB) Retire(ctx context.Context, tx pgx.Tx, set Set) error {
	schemas := set.Schemas()
	there, err := read.Schemas(ctx, tx, schemas...)
	if err != nil {
		return err
	}
	for i, name := range schemas {
		if _, ok := there[name]; !ok { // it was dropped manually
			continue
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf("ALTER SCHEMA %s RENAME TO %s%d_%d", ident.Quote(name), spec.OldPrefix, set.Epoch, i)); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "UPDATE "+s.Record("neighbour_set")+" SET state = 'old' WHERE epoch = $1", set.Epoch)
	return err
}

// ErrNoSet reports that the shadow database holds no completed set.
var ErrNoSet = errors.New("the shadow database holds no set of neighbours: run `dpwatch neighbours create`")

// Set is a completed set of copies.
type Set struct {
	Epoch    int64 // grows with every set, also over drop and create; evidence of two epochs must not be mixed
	D0       string
	D1       []string // schemas, each different from D0 by one unit
	Relation spec.Relation
	Method   spec.Method
	Source   string   // the database that was copied
	Tables   []string // names of the relations in every schema
	Made     time.Time
	Twin     string     // schema of a second copy of D0; "" = none, as in a set of an earlier version
	Guard    string     // schema of a third one; "" = none
	Verified *time.Time // when verify found no fault; nil = not yet, or it found one since
}

// Schemas returns the schemas of the set: D0, the neighbours, and the twin and the guard if there are any.
func (s *Set) Schemas() []string { return spec.Schemas(s.D0, s.D1, s.Twin, s.Guard) }

// RecordVerified records that a set was verified, or that it has faults.
func (s *DB) RecordVerified(ctx context.Context, epoch int64, sound bool) error {
	if err := connect.Run(ctx, s.Conn, "ALTER TABLE "+s.Record("neighbour_set")+" ADD COLUMN IF NOT EXISTS verified timestamptz"); err != nil {
		return s.Explain(err)
	}
	_, err := s.Conn.Exec(ctx, "UPDATE "+s.Record("neighbour_set")+" SET verified = CASE WHEN $2 THEN now() END WHERE epoch = $1", epoch, sound)
	return s.Explain(err)
}

// Member is one neighbour and its difference from D0.
type Member struct {
	Schema string
	Key    []string // the unit's key in text form
	Why    string   // the rule that chose it, with its value
	Rows   int64    // of the unit, in all tables
	Account
	Unit string `db:"-"` // a pseudonym of the unit: the same in every set until drop, and useless without the records
}

// Account is what else than the unit's own rows a neighbour without the unit lacks, and where it names the unit. It
// holds numbers of rows and names of columns.
type Account struct {
	Names      []string `json:"names"`      // columns that name the unit, as schema.table.column of the source
	Others     int64    `json:"others"`     // rows that it lacks and that name only other persons
	Undeclared int64    `json:"undeclared"` // of these, rows of tables whose ownership the configuration does not declare
	Shared     int64    `json:"shared"`     // rows that it lacks and that more than two units own
	Large      []string `json:"large"`      // tables of which it lacks more than LargeShare of the rows
}

// JSON returns the account as it is recorded.
func (a Account) JSON() string {
	text, err := json.Marshal(a)
	if err != nil {
		return "{}" // of names and numbers: it cannot happen
	}
	return string(text)
}

// The shares of rows from which on a neighbour has a fault because of rows of others, and a unit is large.
const (
	OthersShare = 0.05
	LargeShare  = 0.05
)

// Open reports whether the neighbour names the unit, or lacks so many rows of others that its answers may differ from
// those of a true neighbour.
func (m *Member) Open() bool {
	return len(m.Names) > 0 || float64(m.Undeclared) > OthersShare*float64(m.Rows)
}

// Remarks describes the account, with numbers of rows.
func (m *Member) Remarks() (out []string) {
	if m.Others > 0 {
		out = append(out, fmt.Sprintf("%d of the %d rows that it lacks name only other persons", m.Others, m.Rows))
	}
	if len(m.Names) > 0 {
		out = append(out, "it names the unit that it lacks in "+strings.Join(m.Names, ", "))
	}
	if m.Shared > 0 {
		out = append(out, fmt.Sprintf("%d of the %d rows that it lacks belong to more than two units", m.Shared, m.Rows))
	}
	if len(m.Large) > 0 {
		out = append(out, fmt.Sprintf("the unit owns over %g %% of %s", 100*LargeShare, strings.Join(m.Large, ", ")))
	}
	return out
}

// Current returns the current set, or ErrNoSet.
func (s *DB) Current(ctx context.Context) (Set, error) {
	there, err := connect.Value[bool](ctx, s.Conn, "SELECT to_regclass($1) IS NOT NULL", s.Record("neighbour_set"))
	if err != nil {
		return Set{}, s.Explain(err)
	}
	if !there {
		return Set{}, ErrNoSet
	}
	sets, err := connect.Structs[Set](ctx, s.Conn, `SELECT epoch, d0, d1, relation, method, source, tables, made, coalesce(to_jsonb(s)->>'twin', ''), coalesce(to_jsonb(s)->>'guard', ''), (to_jsonb(s)->>'verified')::timestamptz
		FROM `+s.Record("neighbour_set")+` s WHERE state = 'current'`) // records of earlier versions have no column twin, guard or verified
	if err != nil {
		return Set{}, fmt.Errorf("read the records in schema %s: %w", s.Options.Control, s.Explain(err))
	}
	if len(sets) == 0 {
		return Set{}, ErrNoSet
	}
	return sets[0], nil
}

// Members returns the neighbours of a set, in the order of its schemas.
func (s *DB) Members(ctx context.Context, set Set) ([]Member, error) {
	salt, err := connect.Value[string](ctx, s.Conn, "SELECT salt FROM "+s.Record("neighbour_version"))
	if err != nil {
		return nil, err
	}
	members, err := connect.Structs[Member](ctx, s.Conn, "SELECT u.schema, u.key, u.why, u.rows, coalesce(a.names, '{}'), coalesce(a.others, 0), coalesce(a.undeclared, 0), coalesce(a.shared, 0), coalesce(a.large, '{}') FROM "+s.Record("neighbour_unit")+
		" u, jsonb_to_record(coalesce(to_jsonb(u)->'account', '{}')) a(names text[], others bigint, undeclared bigint, shared bigint, large text[])"+ // earlier versions have none
		" WHERE epoch = $1 ORDER BY array_position($2::text[], schema)", set.Epoch, set.D1)
	for i := range members {
		members[i].Unit = pseudonym(salt, members[i].Key)
	}
	return members, err
}

// pseudonym returns a salted HMAC-SHA-256 of the key, cut to 48 bits: enough to distinguish units in a list.
func pseudonym(salt string, key []string) string {
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write([]byte(strings.Join(key, "\x00")))
	return "unit-" + hex.EncodeToString(mac.Sum(nil)[:6])
}

// DropRecords removes the records and, if it is then empty, their schema.
func (s *DB) DropRecords(ctx context.Context) error {
	for _, table := range []string{"neighbour_set", "neighbour_unit", "neighbour_object", "neighbour_version"} {
		if _, err := s.Conn.Exec(ctx, "DROP TABLE IF EXISTS "+s.Record(table)); err != nil {
			return s.Explain(err)
		}
	}
	schema := ident.Quote(s.Options.Control)
	used, err := connect.Value[bool](ctx, s.Conn, `SELECT EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace($1))`, schema)
	if err != nil || used {
		return err
	}
	return s.Explain(connect.Run(ctx, s.Conn, "DROP SCHEMA IF EXISTS "+schema))
}

// CheckComplete rejects a schema that lacks a relation of the set.
func (s *DB) CheckComplete(ctx context.Context, schema string, tables []string) error {
	lost, err := connect.Values[string](ctx, s.Conn, `SELECT t FROM unnest($1::text[]) t WHERE to_regclass(format('%I.%I', $2::text, t)) IS NULL`, tables, schema)
	if len(lost) > 0 {
		return fmt.Errorf("schema %s lacks %s: run `dpwatch neighbours create --replace`", schema, strings.Join(lost, ", "))
	}
	return s.Explain(err)
}
