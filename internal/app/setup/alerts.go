package setup

import (
	"slices"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// AlertStyle returns how alerts are rated and what they link to.
func AlertStyle(c config.Config) alert.Style {
	s := alert.Style{Engine: c.EngineName(), Link: c.Alerts.Link, Runbook: c.Alerts.Runbook}
	for _, row := range c.Alerts.Severity {
		s.Scale = append(s.Scale, finding.Excess{Least: row.Excess, Severity: row.Severity})
	}
	return s
}

// AlertReceiver translates a receiver of the configuration.
func AlertReceiver(r config.Receiver) deliver.Receiver {
	out := deliver.Receiver{
		Name: r.Name, Type: r.Type, URL: r.URL.Reveal(), Secret: r.Secret.Reveal(), Command: r.Command,
		SendResolved: r.SendResolved == nil || *r.SendResolved,
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, alert.Label{Name: h.Name, Value: h.Value.Reveal()})
	}
	for _, l := range r.Labels {
		out.Labels = append(out.Labels, alert.Label(l))
	}
	return out
}

// HasStdout reports whether alerts are written to standard output.
func HasStdout(c config.Config) bool {
	return slices.ContainsFunc(c.Alerts.Receivers, func(r config.Receiver) bool { return r.Type == "stdout" })
}
