package neighbours

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// ErrNoSet reports that the shadow database holds no completed set.
var ErrNoSet = errors.New("the shadow database holds no set of neighbours: run `dpwatch neighbours create`")

// Set is a completed set of copies.
type Set struct {
	Epoch    int64 // grows with every set, also over drop and create; evidence of two epochs must not be mixed
	D0       string
	D1       []string // schemas, each different from D0 by one unit
	Relation Relation
	Method   Method
	Source   string   // the database that was copied
	Tables   []string // names of the relations in every schema
	Made     time.Time
}

// Member is one neighbour and its difference from D0.
type Member struct {
	Schema string
	Unit   string   // a pseudonym of the unit: the same in every set until drop, and useless without the records
	Key    []string // the unit's key in text form
	Why    string   // the rule that chose it, with its value
	Rows   int64    // of the unit, in all tables
}

// Current returns the set that audits may use; the session is that of the copies' owner. The error is ErrNoSet if there is
// none.
func Current(ctx context.Context, dsn, control string) (Set, error) {
	o := &Options{Target: dsn, Control: control}
	conn, err := dial(ctx, dsn, "the shadow database")
	if err != nil {
		return Set{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read
	return (&shadow{conn: conn, o: o}).current(ctx)
}

func (s *shadow) current(ctx context.Context) (Set, error) {
	var set Set
	var relation, method string
	var there bool
	if err := s.conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", s.record("neighbour_set")).Scan(&there); err != nil {
		return set, err
	}
	if !there {
		return set, ErrNoSet
	}
	err := s.conn.QueryRow(ctx, "SELECT epoch, d0, d1, relation, method, source, tables, made FROM "+s.record("neighbour_set")+" WHERE state = 'current'").
		Scan(&set.Epoch, &set.D0, &set.D1, &relation, &method, &set.Source, &set.Tables, &set.Made)
	if errors.Is(err, pgx.ErrNoRows) {
		return set, ErrNoSet
	}
	set.Relation, set.Method = Relation(relation), Method(method)
	if err != nil {
		return set, fmt.Errorf("read the records in schema %s: %w", s.o.Control, explain(err))
	}
	return set, nil
}

// List returns the current set and its members. Key and Why hold personal data: show only Unit unless the user asks for
// more.
func List(ctx context.Context, o Options) (Set, []Member, error) {
	conn, err := dial(ctx, o.Target, "neighbours.target")
	if err != nil {
		return Set{}, nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read
	s := &shadow{conn: conn, o: &o}
	set, err := s.current(ctx)
	if err != nil {
		return set, nil, err
	}
	if err := s.checkVersion(ctx); err != nil {
		return set, nil, err
	}
	members, err := s.members(ctx, set)
	return set, members, explain(err)
}

func (s *shadow) members(ctx context.Context, set Set) ([]Member, error) {
	var salt string
	if err := s.conn.QueryRow(ctx, "SELECT salt FROM "+s.record("neighbour_version")).Scan(&salt); err != nil {
		return nil, err
	}
	rows, err := s.conn.Query(ctx, "SELECT u.schema, u.key, u.why, u.rows FROM "+s.record("neighbour_unit")+
		" u WHERE epoch = $1 ORDER BY array_position($2::text[], u.schema)", set.Epoch, set.D1)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Member, error) {
		var m Member
		err := row.Scan(&m.Schema, &m.Key, &m.Why, &m.Rows)
		m.Unit = pseudonym(salt, m.Key)
		return m, err
	})
}

// pseudonym returns a salted HMAC-SHA-256 of the key, cut to 48 bits: enough to distinguish units in a list.
func pseudonym(salt string, key []string) string {
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write([]byte(strings.Join(key, "\x00")))
	return "unit-" + hex.EncodeToString(mac.Sum(nil)[:6])
}

// Drop removes the set, the types and schemas created for it, leftovers of killed commands, and the records.
func Drop(ctx context.Context, o Options) error {
	s, err := openShadow(ctx, &o, false)
	if errors.Is(err, ErrNoSet) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.close(ctx)
	set, err := s.current(ctx)
	if err != nil && !errors.Is(err, ErrNoSet) {
		return err
	}
	if err == nil { // in one transaction: a killed command leaves the whole set or none
		if err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error { return s.retire(ctx, tx, set) }); err != nil {
			return explain(err)
		}
	}
	if err := s.leftovers(ctx); err != nil {
		return explain(err)
	}
	if err := s.dropTypes(ctx, "true"); err != nil {
		return explain(err)
	}
	return s.dropRecords(ctx)
}

// dropRecords removes the records and, if it is then empty, their schema.
func (s *shadow) dropRecords(ctx context.Context) error {
	for _, table := range []string{"neighbour_set", "neighbour_unit", "neighbour_object", "neighbour_version"} {
		if _, err := s.conn.Exec(ctx, "DROP TABLE IF EXISTS "+s.record(table)); err != nil {
			return explain(err)
		}
	}
	var used bool
	err := s.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace($1))`,
		ident.Quote(s.o.Control)).Scan(&used)
	if err != nil || used {
		return err
	}
	_, err = s.conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+ident.Quote(s.o.Control))
	return explain(err)
}
