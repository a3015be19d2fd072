package recognize

import (
	"regexp"
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Policy is what happens with unclaimed reads: queries that read protected tables, call no DP function and have no
// claim.
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

// policyOf returns the policy of a query that was just analysed; "" = it is no unclaimed read.
func (r *Recognizer) policyOf(q capture.Query, plan *rewrite.Plan) Policy {
	if plan.Claim != nil || plan.DPCalls > 0 {
		return ""
	}
	for _, rule := range r.rules {
		if (rule.User == "" || rule.User == q.User) && (rule.Database == "" || rule.Database == q.Database) && (rule.ApplicationName == "" || rule.ApplicationName == q.ApplicationName) &&
			(rule.Table == ident.Table{} || slices.Contains(plan.Tables, rule.Table)) && (rule.Pattern == nil || rule.Pattern.MatchString(plan.Summary)) {
			return rule.Policy
		}
	}
	return PolicyAudit
}
