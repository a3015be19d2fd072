// Package capture holds the captured query, which is the value passed from the proxy to the audit, and the bounded
// queue between them.
//
// It owns the type, its binary form for the channel to the auditor process, and the queue, which never blocks. The wire
// protocol belongs to package proxy, SQL to package rewrite.
package capture

import "time"

// Protocol is the sub-protocol that carried a statement.
type Protocol uint8

// The two sub-protocols of PostgreSQL's frontend/backend protocol (manual, chapter 55.2).
const (
	Simple   Protocol = iota // Query
	Extended                 // Parse, Bind, Execute
)

// String returns "simple" or "extended".
func (p Protocol) String() string {
	if p == Extended {
		return "extended"
	}
	return "simple"
}

// Param is one bound parameter as the client sent it.
type Param struct {
	OID    uint32 // type from Parse; 0 = inferred by the server
	Format int16  // 0 text, 1 binary
	Null   bool   // NULL, as opposed to an empty value
	Value  []byte // raw bytes; nil when Null
}

// Query is one statement that a client sent and that the server ran: it parsed and analyzed the text without an error.
//
// It does not refer to buffers of the proxy. Stages pass it by value and do not change it: Settings can be shared with
// other queries of the same session.
type Query struct {
	SessionID       uint64
	User            string
	Database        string
	ApplicationName string

	// SQL is the single statement as the client wrote it, comments included, without the semicolon.
	SQL      string
	Protocol Protocol
	Params   []Param // empty for Simple
	// Named is true for a statement with a name, of the extended protocol or of PREPARE: the server can cache its plan
	// and use a generic one for all parameters. An unnamed statement is planned for its actual parameters.
	Named bool
	// ResultFormats are Bind's result-column format codes: empty = all text, one = applies to all columns.
	ResultFormats []int16
	// Settings are the settings in force when the statement ran, as far as the client set them (startup options, SET,
	// SET LOCAL), by lower-case name.
	Settings map[string]string
	// Whole is true if Settings hold the initial settings of the session as well: those of its role and database.
	Whole bool
	// Doubt says which settings, ApplicationName included, may differ from Settings.
	Doubt Doubt
	// Temporary lists the names in SQL, sorted, that may refer to temporary relations of the session if they have no
	// schema.
	Temporary []string
	// Temps are those of the temporary relations in SQL, and of the views among them, that may run declared
	// functions or read protected tables when SQL names them.
	Temps []Temp
	// Then holds further statements of the session, in their order: the query is a sequence, whose answers are audited
	// together. The proxy never sets it. nil = a single statement.
	Then []Step
	// Tag is the command tag of CommandComplete, for example "SELECT 3"; empty unless the statement was completed.
	Tag string
	// Completed is the time at which the proxy saw how the statement ended, and Began the time at which it opened the
	// session; zero = not known.
	Completed, Began time.Time
	// Outcome is how it ended, and SQLState the code of the error, if there was one and it is known.
	Outcome  Outcome
	SQLState string
	// Stated is the claim that the engine states in its answer, if the proxy reads it.
	Stated Stated
}

// Temp is what the session said of a temporary relation.
type Temp struct {
	Name string
	// View is the statement that created the view; "" for a table with expressions of its own (defaults, triggers), and
	// where the text is not known any more.
	View string
	// Settings are those of Query.Settings, when the view was created, on which the meaning of its names depends, and
	// Doubt is what was in doubt then.
	Settings map[string]string
	Doubt    Doubt
}

func (d Temp) size() int {
	return len(d.Name) + len(d.View) + sizeOfSettings(d.Settings) + d.Doubt.size()
}

// Step is a statement of a sequence after the first one; see Query.
type Step struct {
	SQL      string
	Protocol Protocol
	Params   []Param
	Named    bool
	Stated   Stated
}

// Step returns the statement at the index i of a sequence, 0 first, as a query without Then.
func (q Query) Step(i int) Query {
	if i > 0 {
		s := q.Then[i-1]
		q.SQL, q.Protocol, q.Params, q.Named, q.Stated = s.SQL, s.Protocol, s.Params, s.Named, s.Stated
	}
	q.Then = nil
	return q
}

// AsStep returns the statement as a part of a sequence.
func (q Query) AsStep() Step {
	return Step{SQL: q.SQL, Protocol: q.Protocol, Params: q.Params, Named: q.Named, Stated: q.Stated}
}

// The approximate memory sizes of the fixed parts of a Query, a Step and a Param, in bytes.
const (
	querySize = 352
	stepSize  = 88
	paramSize = 48
)

// Size returns the approximate memory that q holds, in bytes. Bounded queues count it.
func (q Query) Size() int {
	n := querySize + len(q.User) + len(q.Database) + len(q.ApplicationName) + len(q.SQL) + len(q.Tag) + len(q.SQLState) +
		2*len(q.ResultFormats) + sizeOf(q.Params)
	n += sizeOfSettings(q.Settings)
	for _, name := range q.Temporary {
		n += len(name)
	}
	for _, d := range q.Temps {
		n += d.size()
	}
	n += q.Doubt.size()
	for _, s := range q.Then {
		n += stepSize + len(s.SQL) + sizeOf(s.Params)
	}
	return n
}

func sizeOfSettings(settings map[string]string) (n int) {
	for name, value := range settings {
		n += len(name) + len(value)
	}
	return n
}

func sizeOf(params []Param) int {
	n := paramSize * len(params)
	for _, p := range params {
		n += len(p.Value)
	}
	return n
}
