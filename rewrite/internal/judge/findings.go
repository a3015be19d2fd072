package judge

import (
	"cmp"

	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// findings are what speaks against a replay of a statement, and what is assumed about it.
type findings struct {
	refusals []Refusal
	assumed  map[string]bool
	inBody   bool     // the statement is one of the body of a function or of a view
	unknown  *Refusal // of the first name that no catalog has
}

// Refuse records a refusal. hint "" stands for the usual one of the reason. The result is valid until the next refusal.
func (f *findings) Refuse(reason reasons.Reason, node string, offset int32, detail, hint string) *Refusal {
	if hint == "" {
		hint = usualHints[reason]
	}
	f.refusals = append(f.refusals, Refusal{Reason: reason, Node: node, Detail: detail, Offset: int(offset), Hint: hint})
	return &f.refusals[len(f.refusals)-1]
}

// refuseUncertain records the refusal of a name without a schema if the search path is not known. hint "" is to qualify
// it.
func (f *findings) refuseUncertain(node string, offset int32, object, hint string) *Refusal {
	detail := object + " has no schema, and the session's search_path is not known"
	if f.inBody {
		detail = object + " has no schema, and the function sets no search_path"
	}
	return f.Refuse(reasons.SettingsUncertain, node, offset, detail, cmp.Or(hint, "qualify the name with its schema"))
}

// name records the name of an object, unless some catalog has it. A statement that reads no protected table as far as it
// is known is refused for it.
func (f *findings) name(r *Rules, kind, name, node string, offset int32) {
	x := cmp.Or(r.options.Source, r.options.Shadow)
	if f.unknown != nil || x == nil || x.Knows(name) {
		return
	}
	f.unknown = &Refusal{
		Reason: reasons.UnknownName, Node: node, Offset: int(offset),
		Detail: kind + " " + name + " is in no catalog: it is newer, temporary, or was dropped", Hint: "use it again after it was committed",
	}
	if r.options.Source == nil {
		f.unknown.Detail = kind + " " + name + " is not in the shadow database: names are not known beyond the shadow"
		f.unknown.Hint = "set privacy.catalog"
	}
}

// RefuseChange refuses a statement, or a part of one, that changes data.
func (f *findings) RefuseChange(node string, offset int32) {
	detail := "a WITH query that changes data"
	if f.inBody {
		detail = "a statement that changes data"
	}
	f.Refuse(reasons.SideEffects, node, offset, detail, "")
}

func (f *findings) refuseSession(keyword, node string, offset int32) {
	f.Refuse(reasons.SessionDependent, node, offset, keyword+" depends on the session",
		"remove it, or only show it, as a column of the result: a replay runs in another session, as another role")
}

// assume records an assumption of this plan.
func (f *findings) assume(what string) { f.assumed[what] = true }

// AssumeSetters records that the functions which the session called are assumed to have changed no setting that
// matters.
func (f *findings) AssumeSetters() { f.assume(AssumedSetters) }

// columnCall checks a column in function notation.
func (f *findings) columnCall(name string, offset int32) {
	if isSystemColumn(name) {
		f.Refuse(reasons.SystemColumn, "FuncCall", offset, "system column "+name, "")
	}
}
