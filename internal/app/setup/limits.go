package setup

import (
	"time"
)

// CheckTimeout bounds the queries to one server.
const CheckTimeout = 30 * time.Second

// LedgerTimeout limits how long a request reads the ledger: less than the admin port takes to write an answer.
const LedgerTimeout = 20 * time.Second

// AuditorGrace is how long the auditor may take to finish when the relay ends.
const AuditorGrace = 5 * time.Second
