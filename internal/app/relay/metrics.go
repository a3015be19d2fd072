package relay

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/proxy"
)

// relayCollector exports the relay's counters as metrics.
type relayCollector struct{ a *api }

// Describe implements prometheus.Collector.
func (c *relayCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *relayCollector) Collect(ch chan<- prometheus.Metric) {
	m := relayMetrics{ch}
	m.gauge("dpwatch_build_info", "The version, as a label.", 1, "version", setup.Version)
	reloaded := c.a.configuration.reloaded.Load()
	m.gauge("dpwatch_config_last_reload_successful", "1 if the configuration was read without a fault the last time, else 0: then the previous one is in force.", boolean(!reloaded.failed))
	m.gauge("dpwatch_config_last_reload_success_timestamp_seconds", "When the configuration in force was read.", float64(reloaded.last.UnixMilli())/1000)
	for _, e := range c.a.engines.all {
		var label []string
		if len(c.a.engines.all) > 1 {
			label = []string{"engine", e.name()}
		}
		m.auditor(e, label)
	}
	s := c.a.routes.stats()
	m.proxy(s)
	m.tls(s)
	for _, one := range c.a.routes {
		if end := one.Server.Stats().CertificateExpiry; !end.IsZero() {
			m.gauge("dpwatch_proxy_certificate_expiry_timestamp_seconds", "Expiry of the proxy's certificate for clients.", float64(end.Unix()), "route", one.cfg.Name)
		}
	}
}

// auditor sends the metrics of the auditor process of an engine.
func (m relayMetrics) auditor(e *auditedEngine, label []string) {
	auditor := e.supervisor.Stats()
	m.gauge("dpwatch_auditor_up", "1 while the auditor process runs.", boolean(auditor.PID != 0), label...)
	m.gauge("dpwatch_replays_paused", "1 while replays are paused by a signal or the API.", boolean(e.supervisor.Paused()), label...)
	m.gauge("dpwatch_auditor_silence_seconds", "Time since the last message from the auditor.", auditor.LastHeardAgo.Seconds(), label...)
	m.count("dpwatch_auditor_starts_total", "Starts of the auditor process, including the first.", auditor.Starts, label...)
	m.count("dpwatch_statements_set_aside_total", "Captured statements not sent to the auditor because it crashed on them before.", auditor.SetAside, label...)
	m.count("dpwatch_statements_lost_total", "Captured statements of which an auditor process that ended had no lasting record; a few of them may have one.", auditor.QueriesLost, label...)
	m.count("dpwatch_capture_dropped_total", "Captured statements dropped because the auditor did not keep up.", e.queue.Stats().Dropped, label...)
}

// relayMetrics sends metrics. Each name is always sent with the same help and label.
type relayMetrics struct{ ch chan<- prometheus.Metric }

// send sends one metric; label is nothing, or a name and a value.
func (m relayMetrics) send(kind prometheus.ValueType, name, help string, v float64, label []string) {
	d := prometheus.NewDesc(name, help, label[:len(label)/2], nil)
	m.ch <- prometheus.MustNewConstMetric(d, kind, v, label[len(label)/2:]...)
}

func (m relayMetrics) gauge(name, help string, v float64, label ...string) {
	m.send(prometheus.GaugeValue, name, help, v, label)
}

func (m relayMetrics) count(name, help string, v uint64, label ...string) {
	m.send(prometheus.CounterValue, name, help, float64(v), label)
}

// counts sends a counter for each value of a label.
func (m relayMetrics) counts(name, help, label string, values map[string]uint64) {
	for value, v := range values {
		m.count(name, help, v, label, value)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (m relayMetrics) proxy(s proxy.Stats) {
	m.gauge("dpwatch_proxy_sessions", "Open client sessions.", float64(s.OpenSessions))
	m.count("dpwatch_proxy_sessions_total", "Client sessions for which a session with the engine was established.", s.Sessions)
	m.count("dpwatch_proxy_cancel_requests_total", "Cancel requests that were, or should have been, forwarded.", s.CancelRequests)
	m.count("dpwatch_proxy_failed_sessions_total", "Sessions ended by a network error or by a panic in the proxy.", s.FailedSessions)
	m.count("dpwatch_proxy_idle_sessions_ended_total", "Sessions ended because they were idle for proxy.idle_timeout.", s.IdleEnded)
	m.count("dpwatch_statements_tracked_total", "Statements that were captured, including those that failed.", s.QueriesCaptured)
	m.count("dpwatch_claims_unread_total", "Messages of the engine with a claim (claims.answer) that could not be read, and was ignored.", s.ClaimsUnread)
	m.counts("dpwatch_proxy_bytes_total", "Bytes relayed, by the side that sent them.", "from", map[string]uint64{
		"client": s.BytesFromClients, "server": s.BytesFromServer,
	})
	m.counts("dpwatch_proxy_refused_total", "Connections that the proxy refused, by reason.", "reason", map[string]uint64{
		"too_many_sessions": s.RefusedLimit, "upstream_unreachable": s.RefusedUpstream,
		"protocol": s.RefusedProtocol, "draining": s.RefusedDraining, "direct_tls": s.RefusedDirect, "tls_required": s.RefusedTLS,
	})
	m.counts("dpwatch_statements_skipped_total", "Statements that were run and not captured, by reason.", "reason", status.SkippedStatements(s))
	m.counts("dpwatch_uncaptured_sessions_total", "Sessions whose capture stopped, by reason; over_budget and pairing count gaps, after which capture resumed. Their traffic continued.", "reason", map[string]uint64{
		"pairing": s.UncapturedPairing, "replication": s.UncapturedReplication,
		"protocol": s.UncapturedProtocol, "over_budget": s.UncapturedOverflow, "panic": s.UncapturedPanic,
		"tls_passthrough": s.UncapturedPassthrough,
	})
	for reason, n := range s.Unfollowed {
		m.gauge("dpwatch_unfollowed_sessions", "Open sessions whose statements are not captured at present, by reason. Their traffic continues.", float64(n), "reason", reason)
	}
}

func (m relayMetrics) tls(s proxy.Stats) {
	m.count("dpwatch_proxy_tls_sessions_total", "Sessions with TLS between client and proxy.", s.TLSSessions)
	m.count("dpwatch_proxy_tls_handshake_failures_total", "TLS handshakes with clients that failed.", s.TLSFailures)
	m.count("dpwatch_proxy_plus_filtered_sessions_total", "Sessions with TLS to the engine but not to the client, in which the proxy removes SCRAM-SHA-256-PLUS from the engine's mechanisms.", s.PlusFiltered)
	m.counts("dpwatch_proxy_certificate_reloads_total", "Reloads of the certificate after its files were replaced, by result.", "result", map[string]uint64{
		"ok": s.CertificateLoads, "failed": s.CertificateFaults,
	})
}
