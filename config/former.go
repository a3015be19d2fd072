package config

import (
	"regexp"
	"strings"
)

// former are the keys of earlier versions, with what to do instead. Keys below engines are as those of the top level.
var former = map[string]string{
	"proxy.startup_timeout":       "remove it: it is always 10s",
	"proxy.dial_timeout":          "remove it: it is always 5s",
	"proxy.keepalive":             "remove it: it is always 1m",
	"proxy.capture_budget":        "remove it: it is always 1MiB",
	"proxy.capture_rate":          "remove it: it is always 1000 statements per second",
	"proxy.queue_length":          "remove it: it is always 4096",
	"proxy.queue_bytes":           "remove it: it is always 32MiB",
	"proxy.auditor_hang_limit":    "remove it: it is always 1m",
	"proxy.routes":                "write the routes of each engine below engines: engines: [{name: shop, proxy: {listen: ..., upstream: ...}}]; several routes of one engine are a list; without engine: the name that `dpwatch status` shows",
	"admin.listeners":             "write the list below admin itself: admin: [{listen: 127.0.0.1:9188}, {listen: 0.0.0.0:9189, metrics_only: true}]",
	"admin.open_metrics":          "add a listener for metrics to the list: admin: [{listen: ...}, {listen: 127.0.0.1:9189, metrics_only: true}]",
	"admin.proxy_login.viewers":   "write users: [\"viewer *\"], each user after the roles",
	"admin.proxy_login.auditors":  "write users: [\"auditor ann\"], each user after the roles",
	"admin.proxy_login.operators": "write users: [\"operator ann\"], each user after the roles",
	"shadow.connect_timeout":      "remove it: it is always 5s",
	"shadow.worlds":               "write engine: {dsn: [...]}, with the connection strings of D0 and of each neighbour of d1, in this order",
	"shadow.protocol":             "write engine: {protocol: ...}",
	"shadow.engine_version":       "write engine: {version: ...}",
	"privacy.catalog_refresh":     "remove it: catalogs are read every 5m, and soon after an unknown name",
	"neighbours.control_schema":   "remove it: it is dpwatch if shadow.d0 is d0, and otherwise dpwatch_ and the name of that schema; rename a schema of another name: ALTER SCHEMA old RENAME TO dpwatch",
	"neighbours.workers":          "remove it: it is always 2",
	"audit.timing_pairs":          "remove it: `dpwatch audit --timing N` compares the latencies of one query",
	"audit.batch_trials":          "remove it: batches have about 25 rounds",
	"audit.rate":                  "write share: 0.1, a part of the time of one connection, and windows for the hours of replays; audit.budget.trials_per_hour bounds the trials of an hour",
	"audit.slowdown":              "write share: 0.1, a part of the time of one connection",
	"audit.max_active":            "write share: 0.1, a part of the time of one connection, or windows: [\"22:00-06:00 Europe/Berlin\"] for quiet hours; SIGUSR1 and POST /api/pause hold all replays",
	"audit.max_per_shape":         "remove it: it is always 20",
	"audit.max_tokens":            "remove it: it is always 20000; proxy.max_statement bounds the length of a statement",
	"audit.parse_timeout":         "remove it: it is always 3s",
	"audit.retry_after":           "remove it: it is always 30s",
	"audit.rescue_after":          "remove it: it is always 1m",
	"audit.sequence_window":       "remove it: it is always 5m",
	"audit.prior_odds":            "remove it: it is always 1",
	"audit.breach_odds":           "remove it: it is always 2",
	"alerts.resend":               "remove it: it is always 1m",
	"alerts.resolve_after":        "remove it: it is always 24h",
	"alerts.unhealthy_after":      "remove it: it is always 10m; alerts.routes chooses who gets alerts of the kind auditor_unhealthy",
	"alerts.receivers.per_minute": "remove it: it is always 60",
	"alerts.receivers.timeout":    "remove it: it is always 10s",
	"ledger.keys":                 "remove it: statements are stored as they are (plain) or not at all (withheld); encrypt the disk of the ledger",
	"log.sql":                     "write reveal: sql instead of sql: true, and nothing instead of sql: false",
	"log.values":                  "write reveal: values instead of values: true (it includes the SQL), and nothing instead of values: false",
}

// formerValues are former values of keys, with what to write instead: of ledger.statements a word, of shadow.engine a
// single value instead of keys.
var formerValues = map[string]string{
	"ledger.statements": "encrypted is no longer a value: write plain, and encrypt the disk of the ledger, or withheld",
	"shadow.engine":     "is a section now: write engine: {dsn: postgres://...}; nothing instead of \"\"",
}

var listIndex = regexp.MustCompile(`\[[0-9]+\]`)

// formerKey returns what replaces the key of an earlier version at a path; "" if it was none.
func formerKey(path string) string { return former[plainKey(path)] }

// plainKey returns a path without the positions in lists, and without engines.
func plainKey(path string) string {
	return strings.TrimPrefix(listIndex.ReplaceAllString(path, ""), "engines.")
}
