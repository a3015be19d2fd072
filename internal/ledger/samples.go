package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sample is an example of the statements that are not audited for a reason. Only Text holds constants and parameters.
type Sample struct {
	Reason                      string
	User, Database, Application string
	Shape                       string // the statement without constants and comments; "" = not known
	Detail                      string // what was found: a function, a table, a setting, a size
	Advice                      string // what to do about this statement; "" = what the reason says
	Text                        string // the beginning of the statement; "" = not known or withheld
	At                          time.Time
}

// samplesPerReason is the number of samples that are stored for a reason: the latest of each user, database and
// application first, then the second latest of each, and so on, the newest first.
const samplesPerReason = 5

// WithoutTexts removes the texts of the samples.
func (b *Batch) WithoutTexts() {
	for i := range b.Samples {
		b.Samples[i].Text = ""
	}
}

// sample queues the writes of samples: one that is stored already gets its time and text.
func (r *recording) sample(all *pgx.Batch) {
	reasons := map[string]bool{}
	for i := range r.b.Samples {
		s := &r.b.Samples[i]
		reasons[s.Reason] = true
		var text []byte
		if s.Text != "" && !r.w.withhold {
			text = []byte(s.Text)
		}
		all.Queue("DELETE FROM samples WHERE engine = $1 AND reason = $2 AND username = $3 AND database = $4 AND application = $5 AND shape = $6 AND detail = $7",
			r.w.name, s.Reason, valid(s.User), valid(s.Database), valid(s.Application), valid(s.Shape), valid(s.Detail))
		all.Queue("INSERT INTO samples (engine, reason, username, database, application, shape, detail, advice, text, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
			r.w.name, s.Reason, valid(s.User), valid(s.Database), valid(s.Application), valid(s.Shape), valid(s.Detail), valid(s.Advice), text, s.At)
	}
	for reason := range reasons {
		all.Queue(`DELETE FROM samples WHERE ctid IN (
			SELECT ctid FROM (SELECT ctid, row_number() OVER (ORDER BY n, at DESC) AS place FROM (
			  SELECT ctid, at, row_number() OVER (PARTITION BY username, database, application ORDER BY at DESC) AS n FROM samples WHERE engine = $1 AND reason = $2) AS each) AS all_of
			WHERE place > $3)`, r.w.name, reason, samplesPerReason)
	}
}

// samples returns the samples since the beginning of an hour and before until, by reason, the newest first.
func samples(ctx context.Context, tx pgx.Tx, v *Volumes, until *time.Time) error {
	rows, err := tx.Query(ctx, `SELECT engine, reason, username, database, application, shape, detail, advice, text, at FROM samples
		WHERE engine = ANY($1) AND at >= $2 AND ($3::timestamptz IS NULL OR at < $3) ORDER BY reason, at DESC`, v.Engines, v.Since, until)
	if err != nil {
		return err
	}
	v.Samples, err = pgx.AppendRows(v.Samples, rows, func(row pgx.CollectableRow) (s Sample, err error) {
		var engine string
		var text []byte
		err = row.Scan(&engine, &s.Reason, &s.User, &s.Database, &s.Application, &s.Shape, &s.Detail, &s.Advice, &text, &s.At)
		s.Text = string(text)
		return s, err
	})
	return err
}
