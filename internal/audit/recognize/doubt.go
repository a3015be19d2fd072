package recognize

import (
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// maxDetail bounds the length of Recognized.Detail: names come from clients.
const maxDetail = 500

// listedFunctions bounds the functions that a detail names.
const listedFunctions = 4

// explainDoubt adds to a refusal for an uncertain setting what the session did before, and how it becomes certain
// again.
func explainDoubt(d capture.Doubt, detail, advice string) (string, string) {
	var before []string
	if len(d.Names) > 0 {
		before = append(before, "may have changed "+strings.Join(d.Names, ", "))
	}
	var functions []string
	code, more := false, false
	for _, c := range d.Calls {
		for _, f := range c.Functions {
			switch f {
			case capture.UnknownCode:
				code = true
			case capture.UnlistedFunctions, capture.UnknownFunction:
				more = true
			default:
				functions = append(functions, f)
			}
		}
	}
	slices.Sort(functions)
	functions = slices.Compact(functions)
	if len(functions) > listedFunctions {
		functions, more = functions[:listedFunctions], true
	}
	switch {
	case len(functions) > 0 && more:
		before = append(before, "called "+strings.Join(functions, ", ")+" and other functions")
	case len(functions) > 0:
		before = append(before, "called "+strings.Join(functions, ", "))
	case more:
		before = append(before, "called functions")
	}
	if code {
		before = append(before, "ran code whose changes of settings are not known (a DO block, a procedure, or a statement that was not captured)")
	}
	if len(before) == 0 {
		return detail, advice
	}
	detail += "; before, the session " + strings.Join(before, " and ")
	if advice != "" {
		advice += "; or "
	}
	return detail, advice + "run SET for that setting, or DISCARD ALL, after that"
}
