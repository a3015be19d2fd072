package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// TuningVariable is the environment variable with which tests of the whole program change Tuning. Its value is a JSON
// object: {"retry_after": "200ms"}.
const TuningVariable = "DPWATCH_TEST_TUNING"

// Tuning holds limits and intervals that no key of the file sets.
type Tuning struct {
	DialTimeout      Duration `json:"dial_timeout"`       // for connecting to the engine
	CaptureRate      int      `json:"capture_rate"`       // maximum number of statements per second sent to the auditor
	QueueLength      int      `json:"queue_length"`       // captured queries that wait for the auditor
	AuditorHangLimit Duration `json:"auditor_hang_limit"` // an auditor that is silent for so long is killed and restarted
	CatalogRefresh   Duration `json:"catalog_refresh"`    // interval of reading the catalogs again
	BatchTrials      int      `json:"batch_trials"`       // rounds per batch of trials
	MaxPerShape      int      `json:"max_per_shape"`      // audits of queries of one user that differ only in constants
	RetryAfter       Duration `json:"retry_after"`        // pause after the shadow database or the ledger became unreachable
	RescueAfter      Duration `json:"rescue_after"`       // turns of a worker that is silent for so long are taken back
}

func defaultTuning() Tuning {
	return Tuning{
		DialTimeout: Duration(5 * time.Second), CaptureRate: 1000, QueueLength: 4096, AuditorHangLimit: Duration(time.Minute),
		CatalogRefresh: Duration(5 * time.Minute), BatchTrials: 25, MaxPerShape: 20,
		RetryAfter: Duration(30 * time.Second), RescueAfter: Duration(time.Minute),
	}
}

// set replaces what the value of TuningVariable names; "" = nothing.
func (t *Tuning) set(text string) error {
	if text == "" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(t); err != nil {
		return fmt.Errorf("environment variable %s, which only tests set: %w", TuningVariable, err)
	}
	return nil
}

// UnmarshalText parses Go's notation, for JSON.
func (d *Duration) UnmarshalText(text []byte) error { return d.set(string(text)) }
