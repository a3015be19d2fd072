// Package capture holds the captured query, the value that the proxy gives and the audit takes,
// and the bounded queue between them.
//
// It owns the type, its binary form for the channel to the auditor process, and the queue that never
// blocks. It does not know the wire protocol (package proxy does) nor SQL (package rewrite does).
package capture

import "time"

// Protocol says which sub-protocol carried a statement.
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
	OID    uint32 // type from Parse; 0 = the server infers it
	Format int16  // 0 text, 1 binary
	Null   bool   // NULL, which is not the empty value
	Value  []byte // raw bytes; nil when Null
}

// Query is one statement that a client sent and that the server completed without an error.
//
// Nothing in it points into a buffer of the proxy. It is handed from stage to stage by value and is not
// changed after it was made: Settings may be shared with other queries of the same session.
type Query struct {
	SessionID       uint64
	User            string
	Database        string
	ApplicationName string

	// SQL is the one statement, as the client wrote it (comments included), without the semicolon.
	SQL      string
	Protocol Protocol
	Params   []Param // empty for Simple
	// Named is true for a statement of the extended protocol, or of PREPARE, that has a name: the server keeps its plans, and may
	// take one for all parameters. A statement without a name is planned for the parameters that it comes with.
	Named bool
	// ResultFormats are Bind's result-column format codes: none = all text, one = all alike.
	ResultFormats []int16
	// Settings are the session's settings in force when the statement ran, as far as the client set them
	// (startup options, SET, SET LOCAL), by lower-case name.
	Settings map[string]string
	// SettingsUncertain is true where Settings and ApplicationName may be wrong: the session changed its
	// settings in a way that cannot be followed (set_config, a statement whose text was not captured, say).
	SettingsUncertain bool
	// Temporary are the names in SQL, sorted, that may mean temporary relations of the session where they stand without a schema.
	Temporary []string
	// Tag is the command tag of CommandComplete, "SELECT 3", say.
	Tag string
	// Completed is when the proxy saw the statement complete.
	Completed time.Time
}

// querySize and paramSize are about what the fixed parts of a Query and of a Param take in memory, in bytes.
const (
	querySize = 256
	paramSize = 48
)

// Size returns about how many bytes of memory q holds: what a bounded queue counts.
func (q Query) Size() int {
	n := querySize + len(q.User) + len(q.Database) + len(q.ApplicationName) + len(q.SQL) + len(q.Tag) +
		2*len(q.ResultFormats) + paramSize*len(q.Params)
	for _, p := range q.Params {
		n += len(p.Value)
	}
	for name, value := range q.Settings {
		n += len(name) + len(value)
	}
	for _, name := range q.Temporary {
		n += len(name)
	}
	return n
}
