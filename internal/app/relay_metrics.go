package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/proxy"
)

// relayCollector exports the relay's counters as metrics.
type relayCollector struct{ r *Relay }

var (
	descSessions = prometheus.NewDesc("dpwatch_proxy_sessions", "Client sessions now.", nil, nil)
	descAccepted = prometheus.NewDesc("dpwatch_proxy_sessions_total", "Client sessions accepted.", nil, nil)
	descDropped  = prometheus.NewDesc("dpwatch_capture_dropped_total", "Captured statements that were dropped because the auditor did not keep up.", nil, nil)
	descStarts   = prometheus.NewDesc("dpwatch_auditor_starts_total", "Starts of the auditor process, the first one included.", nil, nil)
	descUp       = prometheus.NewDesc("dpwatch_auditor_up", "1 while the auditor process runs.", nil, nil)
	descSilence  = prometheus.NewDesc("dpwatch_auditor_silence_seconds", "Time since the auditor was last heard.", nil, nil)
	descAside    = prometheus.NewDesc("dpwatch_statements_set_aside_total", "Captured statements not sent to the auditor because it died on them before.", nil, nil)
	descPaused   = prometheus.NewDesc("dpwatch_replays_paused", "1 while replays are paused by a signal or the API.", nil, nil)
	descLost     = prometheus.NewDesc("dpwatch_statements_lost_total", "Captured statements lost while the auditor died.", nil, nil)
	descBuild    = prometheus.NewDesc("dpwatch_build_info", "The version, as a label.", []string{"version"}, nil)
)

// Describe implements prometheus.Collector.
func (c *relayCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *relayCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	auditor := c.r.supervisor.Stats()
	up := 0.0
	if auditor.PID != 0 {
		up = 1
	}
	gauge(descBuild, 1, Version)
	gauge(descUp, up)
	paused := 0.0
	if c.r.supervisor.Paused() {
		paused = 1
	}
	gauge(descPaused, paused)
	gauge(descSilence, auditor.LastHeardAgo.Seconds())
	count(descStarts, auditor.Starts)
	count(descAside, auditor.SetAside)
	count(descLost, auditor.QueriesLost)
	count(descDropped, c.r.queue.Stats().Dropped)
	c.proxy(gauge, count)
}

var (
	descBytes    = prometheus.NewDesc("dpwatch_proxy_bytes_total", "Bytes relayed, by the side that sent them.", []string{"from"}, nil)
	descRefused  = prometheus.NewDesc("dpwatch_proxy_refused_total", "Connections that the proxy refused itself, by reason.", []string{"reason"}, nil)
	descCancels  = prometheus.NewDesc("dpwatch_proxy_cancel_requests_total", "Cancel requests forwarded.", nil, nil)
	descFailed   = prometheus.NewDesc("dpwatch_proxy_failed_sessions_total", "Sessions ended by an error of the network.", nil, nil)
	descTracked  = prometheus.NewDesc("dpwatch_statements_tracked_total", "Completed statements that the proxy understood and offered to the auditor.", nil, nil)
	descSkipped  = prometheus.NewDesc("dpwatch_statements_skipped_total", "Completed statements that were not captured, by reason.", []string{"reason"}, nil)
	descUntapped = prometheus.NewDesc("dpwatch_uncaptured_sessions_total", "Sessions whose capture stopped, by reason; their traffic went on.", []string{"reason"}, nil)
)

func (c *relayCollector) proxy(gauge func(*prometheus.Desc, float64, ...string), count func(*prometheus.Desc, uint64, ...string)) {
	s := c.r.stats()
	gauge(descSessions, float64(s.OpenSessions))
	labelled := func(d *prometheus.Desc, values map[string]uint64) {
		for label, v := range values {
			count(d, v, label)
		}
	}
	count(descAccepted, s.Sessions)
	count(descCancels, s.CancelRequests)
	count(descFailed, s.FailedSessions)
	count(descTracked, s.QueriesCaptured)
	labelled(descBytes, map[string]uint64{"client": s.BytesFromClients, "server": s.BytesFromServer})
	labelled(descRefused, map[string]uint64{
		"too_many_sessions": s.RefusedLimit, "upstream_unreachable": s.RefusedUpstream,
		"protocol": s.RefusedProtocol, "draining": s.RefusedDraining, "direct_tls": s.RefusedDirect, "tls_required": s.RefusedTLS,
	})
	labelled(descSkipped, map[string]uint64{
		"client_encoding": s.SkippedEncoding, "standard_conforming_strings": s.SkippedStrings, "too_long": s.SkippedTooLong,
		"over_budget": s.SkippedNotCopied, "unknown_statement": s.SkippedUnknownStatement, "unreadable": s.SkippedUnreadable, "arguments": s.SkippedArguments,
		"unprotected": s.SkippedUnprotected,
	})
	labelled(descUntapped, map[string]uint64{
		"pairing": s.UncapturedPairing, "copy": s.UncapturedCopy, "replication": s.UncapturedReplication,
		"protocol": s.UncapturedProtocol, "over_budget": s.UncapturedOverflow, "panic": s.UncapturedPanic,
		"tls_passthrough": s.UncapturedPassthrough,
	})
	c.tls(s, gauge, count)
}

var (
	descTLSSessions = prometheus.NewDesc("dpwatch_proxy_tls_sessions_total", "Sessions whose clients spoke TLS with the proxy.", nil, nil)
	descTLSFailed   = prometheus.NewDesc("dpwatch_proxy_tls_handshake_failures_total", "TLS handshakes with clients that failed.", nil, nil)
	descTLSPlus     = prometheus.NewDesc("dpwatch_proxy_plus_filtered_sessions_total", "Sessions without TLS to whose clients the engine's SCRAM-SHA-256-PLUS was not offered.", nil, nil)
	descTLSExpiry   = prometheus.NewDesc("dpwatch_proxy_certificate_expiry_timestamp_seconds", "End of the certificate that clients see.", []string{"route"}, nil)
	descTLSLoads    = prometheus.NewDesc("dpwatch_proxy_certificate_reloads_total", "Times that the certificate's files were replaced.", []string{"result"}, nil)
	descIdleEnded   = prometheus.NewDesc("dpwatch_proxy_idle_sessions_ended_total", "Sessions ended because nobody used them for proxy.idle_timeout.", nil, nil)
)

func (c *relayCollector) tls(s proxy.Stats, gauge func(*prometheus.Desc, float64, ...string), count func(*prometheus.Desc, uint64, ...string)) {
	count(descTLSSessions, s.TLSSessions)
	count(descTLSFailed, s.TLSFailures)
	count(descTLSPlus, s.PlusFiltered)
	count(descTLSLoads, s.CertificateLoads, "ok")
	count(descTLSLoads, s.CertificateFaults, "failed")
	count(descIdleEnded, s.IdleEnded)
	for _, one := range c.r.routes {
		if end := one.server.Stats().CertificateExpiry; !end.IsZero() {
			gauge(descTLSExpiry, float64(end.Unix()), one.cfg.Name)
		}
	}
}
