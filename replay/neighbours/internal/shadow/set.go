package shadow

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
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/session"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// Retire marks a set as old: its schemas become leftovers.
func (s *DB) Retire(ctx context.Context, tx pgx.Tx, set Set) error {
	for i, name := range append([]string{set.D0}, set.D1...) {
		var there bool
		if err := tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", ident.Quote(name)).Scan(&there); err != nil {
			return err
		}
		if !there { // it may have been dropped manually
			continue
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf("ALTER SCHEMA %s RENAME TO %s%d_%d", ident.Quote(name), spec.OldPrefix, set.Epoch, i)); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "UPDATE "+s.Record("neighbour_set")+" SET state = 'old' WHERE epoch = $1", set.Epoch)
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
}

// Member is one neighbour and its difference from D0.
type Member struct {
	Schema string
	Unit   string   // a pseudonym of the unit: the same in every set until drop, and useless without the records
	Key    []string // the unit's key in text form
	Why    string   // the rule that chose it, with its value
	Rows   int64    // of the unit, in all tables
}

func (s *DB) Current(ctx context.Context) (Set, error) {
	var set Set
	var relation, method string
	var there bool
	if err := s.Conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", s.Record("neighbour_set")).Scan(&there); err != nil {
		return set, err
	}
	if !there {
		return set, ErrNoSet
	}
	err := s.Conn.QueryRow(ctx, "SELECT epoch, d0, d1, relation, method, source, tables, made FROM "+s.Record("neighbour_set")+" WHERE state = 'current'").
		Scan(&set.Epoch, &set.D0, &set.D1, &relation, &method, &set.Source, &set.Tables, &set.Made)
	if errors.Is(err, pgx.ErrNoRows) {
		return set, ErrNoSet
	}
	set.Relation, set.Method = spec.Relation(relation), spec.Method(method)
	if err != nil {
		return set, fmt.Errorf("read the records in schema %s: %w", s.Options.Control, session.Explain(err))
	}
	return set, nil
}

func (s *DB) Members(ctx context.Context, set Set) ([]Member, error) {
	var salt string
	if err := s.Conn.QueryRow(ctx, "SELECT salt FROM "+s.Record("neighbour_version")).Scan(&salt); err != nil {
		return nil, err
	}
	rows, err := s.Conn.Query(ctx, "SELECT u.schema, u.key, u.why, u.rows FROM "+s.Record("neighbour_unit")+
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

// DropRecords removes the records and, if it is then empty, their schema.
func (s *DB) DropRecords(ctx context.Context) error {
	for _, table := range []string{"neighbour_set", "neighbour_unit", "neighbour_object", "neighbour_version"} {
		if _, err := s.Conn.Exec(ctx, "DROP TABLE IF EXISTS "+s.Record(table)); err != nil {
			return session.Explain(err)
		}
	}
	var used bool
	err := s.Conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace($1))`,
		ident.Quote(s.Options.Control)).Scan(&used)
	if err != nil || used {
		return err
	}
	_, err = s.Conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+ident.Quote(s.Options.Control))
	return session.Explain(err)
}

// CheckComplete rejects a schema that lacks a relation of the set.
func (s *DB) CheckComplete(ctx context.Context, schema string, tables []string) error {
	rows, err := s.Conn.Query(ctx, `SELECT t FROM unnest($1::text[]) t WHERE to_regclass(format('%I.%I', $2::text, t)) IS NULL`, tables, schema)
	if err != nil {
		return err
	}
	lost, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		return fmt.Errorf("schema %s has lost %s: run `dpwatch neighbours refresh`", schema, strings.Join(lost, ", "))
	}
	return nil
}
