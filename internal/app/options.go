package app

import (
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// noiseFunctions returns the names of the declared DP functions, without schemas.
func noiseFunctions(c config.Config) []string {
	var names []string
	for _, s := range rewriteOptions(c).Claims.Signatures {
		names = append(names, ident.Bare(s.Function))
	}
	return names
}

func replayOptions(c config.Config, pace replay.Pace) replay.Options {
	return replay.Options{
		DSN: c.Shadow.DSN.Reveal(), SearchPath: c.Shadow.SearchPath, Public: c.Privacy.Public,
		StatementTimeout: time.Duration(c.Shadow.StatementTimeout), ConnectTimeout: time.Duration(c.Shadow.ConnectTimeout),
		MaxRows: c.Shadow.MaxRows, MaxBytes: int64(c.Shadow.MaxResult), HoistBytes: int64(c.Audit.HoistSpace), Connections: auditConnections, Pace: pace,
		Engines: c.Shadow.Engines(), Copies: append([]string{c.Shadow.D0}, c.Shadow.D1...), Protocol: replay.Protocol(c.Shadow.Protocol),
	}
}

// auditConnections is the number of connections of one audit.
const auditConnections = 2

// turnTrials is the minimum number of rounds that one audit runs before its sessions are closed and another audit gets its
// turn.
const turnTrials = 200

func rewriteOptions(c config.Config) rewrite.Options {
	opt := rewrite.Options{
		Database: c.Privacy.Database, Protected: tables(c.Privacy.Protected), Public: tables(c.Privacy.Public), SearchPath: c.Privacy.SearchPath,
		AllowFunctions: c.Claims.SafeFunctions, MaxBytes: int(c.Proxy.MaxStatement), MaxTokens: c.Audit.MaxTokens,
		Neighbours: append([]string{c.Shadow.D0}, c.Shadow.D1...),
		Claims: rewrite.ClaimRules{
			Combine:        c.Claims.Combine,
			EpsilonSetting: settingOrNone(c.Claims.Settings.Epsilon), DeltaSetting: settingOrNone(c.Claims.Settings.Delta),
		},
	}
	if len(c.Shadow.Engines()) == 0 { // an engine resolves names in its own way
		opt.ShadowPath = c.Shadow.SearchPath
	}
	for _, f := range c.Claims.Functions {
		opt.Claims.Signatures = append(opt.Claims.Signatures, rewrite.Signature{
			Function: f.Name, Epsilon: f.Epsilon, Delta: f.Delta, EpsilonName: f.EpsilonName, DeltaName: f.DeltaName,
		})
	}
	for _, r := range c.Claims.Rules {
		opt.Claims.Rules = append(opt.Claims.Rules, rewrite.Rule{
			Name: r.Name, User: r.User, Database: r.Database, ApplicationName: r.ApplicationName,
			Table: ident.ParseTable(r.Table), Pattern: r.Pattern, Epsilon: r.Epsilon, Delta: r.Delta,
		})
	}
	if d := c.Claims.Default; d != nil {
		opt.Claims.Default = &rewrite.Claim{Epsilon: d.Epsilon, Delta: d.Delta}
	}
	for _, t := range c.Claims.Trust {
		opt.Claims.TrustComment = opt.Claims.TrustComment || t == "comment"
		opt.Claims.TrustSetting = opt.Claims.TrustSetting || t == "setting"
	}
	return opt
}

// settingOrNone returns rewrite's notation for "no setting" if name is empty.
func settingOrNone(name string) string {
	if name == "" {
		return "-"
	}
	return name
}

func tables(names []string) []rewrite.Table {
	out := make([]rewrite.Table, len(names))
	for i, name := range names {
		out[i] = ident.ParseTable(name)
	}
	return out
}
