package replay

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// evaluateTimeout bounds an evaluation: the expressions are short, but powers of numeric may take long.
const evaluateTimeout = 5 * time.Second

// Evaluate returns the number to which the shadow database evaluates an expression that reads nothing, or, as fault,
// why it has none. The transaction is read-only, with a statement timeout. An error is one of the connection: the same
// expression may have a value later.
func (p *Player) Evaluate(ctx context.Context, expression string) (number float64, fault string, err error) {
	number, fault, err = p.evaluate(ctx, expression)
	if Lost(err) && endsAgain(ctx, p.cfg, func() error { _, _, err := p.evaluate(ctx, expression); return err }) {
		return 0, endsSession, nil
	}
	return number, fault, err
}

func (p *Player) evaluate(ctx context.Context, expression string) (number float64, fault string, err error) {
	ctx, cancel := context.WithTimeout(ctx, evaluateTimeout+p.cfg.ConnectTimeout)
	defer cancel()
	conn, err := p.connect(ctx, Statement{SearchPath: []string{"pg_catalog"}})
	if err != nil {
		return 0, "", err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	const begin = "BEGIN READ ONLY; SET LOCAL statement_timeout = "
	if _, err := conn.Exec(ctx, begin+millis(evaluateTimeout)).ReadAll(); err != nil {
		return 0, "", p.settingError("statement_timeout", err)
	}
	// float8 has all values of a claim; NaN and the infinities are rejected as claims.
	result := conn.ExecParams(ctx, "SELECT CAST("+expression+" AS pg_catalog.float8)", nil, nil, nil, nil).Read()
	var pg *pgconn.PgError
	switch {
	case errors.As(result.Err, &pg) && !conn.IsClosed():
		return 0, "cannot be evaluated: " + sqlstate.Withhold(pg).Error(), nil
	case result.Err != nil:
		return 0, "", &transientError{op: "evaluate a claim", err: result.Err, lost: loses(result.Err)}
	case len(result.Rows) != 1 || len(result.Rows[0]) != 1:
		return 0, "", unexpectedAnswer("evaluate a claim", "another number of values than 1")
	case result.Rows[0][0] == nil:
		return 0, "is NULL", nil
	}
	number, err = strconv.ParseFloat(string(result.Rows[0][0]), 64)
	if err != nil {
		return 0, "is not a number", nil //nolint:nilerr // it has no value
	}
	return number, "", nil
}
