package replay

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// askTimeout bounds an answer about a claim: an engine may plan the statement for it.
const askTimeout = 10 * time.Second

// Answer is the row with which an engine answers about a claim: the names of its columns and their texts, nil = NULL.
// Without a row both are empty.
type Answer struct {
	Names []string
	Row   []*string
	Fault string // why there is none; continues a text after "the engine's answer"
}

// Ask sends a query about a statement, its parameter $1, to the engine of D0: the one beside the database, if there is
// one, otherwise the shadow database, in a read-only transaction. settings and path are those of the statement's
// session. An error is one of the connection.
func (p *Player) Ask(ctx context.Context, query, statement string, settings map[string]string, path []string) (Answer, error) {
	a, err := p.ask(ctx, query, statement, settings, path)
	cfg := p.cfg
	if len(p.engines) > 0 {
		cfg = p.engines[0]
	}
	if Lost(err) && endsAgain(ctx, cfg, func() error { _, err := p.ask(ctx, query, statement, settings, path); return err }) {
		return Answer{Fault: endsSession}, nil
	}
	return a, err
}

func (p *Player) ask(ctx context.Context, query, statement string, settings map[string]string, path []string) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout+p.cfg.ConnectTimeout)
	defer cancel()
	conn, err := p.askConn(ctx, Statement{Settings: settings, SearchPath: path})
	if err != nil {
		return Answer{}, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	var results []*pgconn.Result
	if p.opt.Protocol == Simple {
		results, err = conn.Exec(ctx, strings.ReplaceAll(query, "$1", ident.Literal(statement))).ReadAll()
	} else {
		result := conn.ExecParams(ctx, query, [][]byte{[]byte(statement)}, nil, nil, nil).Read()
		results, err = []*pgconn.Result{result}, result.Err
	}
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && !conn.IsClosed():
		return Answer{Fault: "is an error: " + sqlstate.Withhold(pg).Error()}, nil
	case err != nil:
		return Answer{}, &transientError{op: "ask for a claim", err: err, lost: loses(err)}
	case len(results) != 1 || len(results[0].Rows) > 1:
		return Answer{Fault: "has several rows"}, nil
	}
	var a Answer
	for i, field := range results[0].FieldDescriptions {
		if len(results[0].Rows) == 0 {
			break
		}
		a.Names = append(a.Names, field.Name)
		var text *string
		if value := results[0].Rows[0][i]; value != nil {
			s := string(value)
			text = &s
		}
		a.Row = append(a.Row, text)
	}
	return a, nil
}

// askConn opens a session that only reads.
func (p *Player) askConn(ctx context.Context, s Statement) (*pgconn.PgConn, error) {
	if len(p.engines) > 0 {
		conn, _, err := p.engines.connect(ctx, 0, s, askTimeout)
		return conn, err
	}
	conn, err := p.connect(ctx, s)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "BEGIN READ ONLY; SET LOCAL statement_timeout = "+millis(askTimeout)).ReadAll(); err != nil {
		_ = conn.Close(ctx)
		return nil, p.settingError("statement_timeout", err)
	}
	return conn, nil
}
