package judge

import (
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// ownRowType reports whether a type in the body of a neighbour's function or view is the row type of that neighbour's
// table.
func (c *Called) ownRowType(parts []string) bool {
	return c.callees != nil && len(parts) == 2 && c.rules.names.Kinds[Table{Schema: parts[0], Name: parts[1]}] == resolve.KindProtected
}

// userType checks the functions that are called to create a value of a user-defined type: its input function, casts to
// it, and the checks of a domain.
func (c *Called) userType(parts []string, offset int32) {
	functions, name := c.rules.functions, parts[len(parts)-1]
	schema := ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	if schema != "pg_catalog" {
		c.findings.name(c.rules, "type", strings.TrimLeft(name, "_"), "TypeName", offset)
	}
	if functions.source == nil {
		if schema != "pg_catalog" {
			c.findings.assume(AssumedBuiltin)
		}
		return
	}
	c.names.use(nameUse{kind: useType, schema: schema, name: name, node: "TypeName", offset: offset, builtin: schema == "pg_catalog"})
	c.Unknown = c.Unknown || schema != "pg_catalog" && !c.names.knowsType(strings.TrimLeft(name, "_"))
	for _, t := range functions.source.Types[name] {
		switch {
		case t.Schema == schema, schema == "" && (t.Schema == "pg_catalog" || c.names.path.Has(t.Schema)):
			for _, f := range t.Calls {
				c.implied(f, "type "+strings.Join(parts, "."), "TypeName", offset)
			}
		case schema == "" && (c.names.path.Uncertain || c.query.Doubt.Temporary):
			c.findings.refuseUncertain("TypeName", offset, "type "+name, "")
		}
	}
}

// userAttribute checks x.name, which PostgreSQL resolves as the call name(x) if x has no such column, by the
// user-defined functions that it may refer to. row: x is a row.
func (c *Called) userAttribute(name string, row bool, node string, offset int32) {
	source := c.rules.functions.source
	switch {
	case name == "": // x.*
		return
	case source == nil:
		c.findings.assume(AssumedAttribute)
		return
	case slices.ContainsFunc(source.Functions[name], c.rules.names.isReader):
		c.findings.Refuse(reasons.NoCopy, node, offset, "function "+name+" in attribute notation reads a protected table", "write it as a call, or rename the column")
		return
	}
	for _, f := range source.Functions[name] {
		if f.OfOne && (f.OfRow || !row) && (c.names.path.Uncertain || c.names.path.Has(f.Schema)) {
			c.implied(Table{Schema: f.Schema, Name: f.Name}, name+" in attribute notation", node, offset)
		}
	}
}

// castAttribute checks (x).name as the cast of a value to a type, as PostgreSQL resolves it if there is no function of
// that name.
func (c *Called) castAttribute(name string, offset int32) {
	switch {
	case isNameType(name):
		c.findings.Refuse(reasons.NameInString, "A_Indirection", offset, "type "+name+" in attribute notation converts text to the name of an object", "")
	case c.rules.functions.source != nil && len(c.rules.functions.source.Types[name]) > 0:
		c.userType([]string{name}, offset)
	}
}
