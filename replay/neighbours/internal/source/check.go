package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/session"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
)

// MissingRights are the privileges that the role of neighbours.source lacks.
type MissingRights struct {
	Role, Database string
	Grants         []string // statements to run in the database
}

func (e *MissingRights) Error() string {
	text := fmt.Sprintf("role %s of neighbours.source lacks rights at the source, database %s: run there: ", e.Role, e.Database)
	for i, grant := range e.Grants {
		if i > 0 {
			text += "; "
		}
		text += grant
	}
	return text
}

// CheckConditions rejects conditions of privacy.paths that are no SQL on the columns of their tables.
func CheckConditions(ctx context.Context, tx pgx.Tx, m *Model, o *spec.Options) error {
	var faults []error
	for i, p := range o.Paths {
		r := m.Named(p.Table)
		if p.Where == "" || r == nil {
			continue
		}
		err := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
			_, err := inner.Exec(ctx, fmt.Sprintf("SELECT FROM (SELECT * FROM ONLY %s LIMIT 0) %s WHERE (%s\n)", r.SQL(), ident.Quote(r.Name), p.Where))
			return err
		})
		if err != nil {
			faults = append(faults, fmt.Errorf("privacy.paths[%d].where is no condition on rows of %s: %w", i, p.Table, err))
		}
	}
	return errors.Join(faults...)
}

// Check returns what prevents the reading of the source: rights, and paths that cannot be followed. The second error is
// that of a source that cannot be examined.
func Check(ctx context.Context, o *spec.Options) (fault, unread error) {
	silent := *o
	silent.Note = nil
	conn, err := session.Open(ctx, o.Source, "neighbours.source")
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Conn: conn, Options: &silent}
	defer s.Close(ctx)
	err = s.Retry(ctx, func() error {
		if fault = nil; s.Open(ctx) != nil {
			return errors.New("the transaction cannot be begun")
		}
		d := &Discovery{Ctx: ctx, Tx: s.Tx, Options: &silent, Model: &Model{}, Dependents: true}
		if fault = d.Find(); fault != nil {
			return nil
		}
		if fault = d.Rights(); fault != nil {
			return nil
		}
		m, err := Read(ctx, s.Tx, &silent, true)
		if err != nil {
			return err
		}
		_, err = NewGraph(m, &silent)
		fault = errors.Join(err, CheckConditions(ctx, s.Tx, m, &silent))
		return nil
	})
	if err != nil {
		err = sqlstate.Withhold(err)
	}
	return fault, err
}
