package audit

import (
	"regexp"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Policy is what happens with unclaimed reads: queries that read protected tables, call no DP function and have no claim.
type Policy string

// The policies.
const (
	PolicyAudit Policy = "audit" // they are replayed, and the status shows an estimate
	PolicyCount Policy = "count" // they are counted as skipped
	PolicyWarn  Policy = "warn"  // they are counted as skipped, and logged as a warning
	PolicyAlert Policy = "alert" // they are counted as skipped, and reported
)

// UnclaimedRule gives the policy for the unclaimed reads that match every field that is set.
type UnclaimedRule struct {
	User, Database, ApplicationName string
	Table                           ident.Table    // that the query reads
	Pattern                         *regexp.Regexp // for the summary; nil = any
	Policy                          Policy
}

// skippedUnclaimed is the reason for skipping an unclaimed read.
const skippedUnclaimed = "unclaimed_read"

// reportUnclaimedEvery is how long the same unclaimed read of the same user, with any constants, is not reported again.
const reportUnclaimedEvery = 24 * time.Hour

// reportedUnclaimed is the minimal number of unclaimed reads that are remembered as reported.
const reportedUnclaimed = 4096

// reader is who sent an unclaimed read, and its statement without constants.
type reader struct{ group, user, database string }

// policyOf returns the policy of a query that was just analysed; "" = it is no unclaimed read.
func (a *Auditor) policyOf(q capture.Query, plan *rewrite.Plan) Policy {
	if plan.Claim != nil || plan.DPCalls > 0 {
		return ""
	}
	for _, r := range a.opt.Unclaimed {
		if (r.User == "" || r.User == q.User) && (r.Database == "" || r.Database == q.Database) && (r.ApplicationName == "" || r.ApplicationName == q.ApplicationName) &&
			(r.Table == ident.Table{} || slices.Contains(plan.Tables, r.Table)) && (r.Pattern == nil || r.Pattern.MatchString(plan.Summary)) {
			return r.Policy
		}
	}
	return PolicyAudit
}

// unclaimed counts an unclaimed read, and reports it if its policy says so and it was not reported lately. The caller holds Auditor.mu.
func (a *Auditor) unclaimed(q capture.Query, r recognized) {
	a.skip(skippedUnclaimed)
	if r.unclaimed == PolicyCount {
		return
	}
	who, now := reader{r.query.Fingerprint, q.User, q.Database}, a.opt.Now()
	if at, ok := a.readers.get(who); ok && now.Sub(at) < reportUnclaimedEvery {
		return
	}
	a.readers.put(who, now)
	if r.unclaimed == PolicyAlert && a.opt.OnFinding != nil {
		a.opt.OnFinding(alert.Finding{Kind: alert.UnclaimedRead, Group: r.query.Fingerprint, Summary: r.query.Summary, User: q.User, Database: q.Database, Application: q.ApplicationName, Route: a.route(q)})
		return
	}
	a.opt.Logger.Warn("a client reads a protected table without a claim and without a DP function",
		zap.String("db.query.summary", r.query.Summary), zap.String("db.query.fingerprint", r.query.Fingerprint),
		zap.String("db.user", q.User), zap.String("db.namespace", q.Database), zap.String("db.application", q.ApplicationName))
}
