package sqltext

// Type OIDs of pg_type.dat.
const (
	oidBool    = 16
	oidInt8    = 20
	oidInt2    = 21
	oidInt4    = 23
	oidText    = 25
	oidFloat4  = 700
	oidFloat8  = 701
	oidBpchar  = 1042
	oidVarchar = 1043
	oidNumeric = 1700
)

// typeOID returns the OID of a type by its SQL name, in lower case with single spaces; 0 if the type is not supported.
func typeOID(name string) uint32 {
	switch name {
	case "bool", "boolean":
		return oidBool
	case "bytea":
		return 17
	case "name":
		return 19
	case "int8", "bigint":
		return oidInt8
	case "int2", "smallint":
		return oidInt2
	case "int4", "int", "integer":
		return oidInt4
	case "text":
		return oidText
	case "oid":
		return 26
	case "json":
		return 114
	case "float4", "real":
		return oidFloat4
	case "float8", "float", "double precision":
		return oidFloat8
	case "unknown":
		return 705
	case "bpchar", "char", "character":
		return oidBpchar
	case "varchar", "character varying", "char varying":
		return oidVarchar
	case "date":
		return 1082
	case "time", "time without time zone":
		return 1083
	case "timestamp", "timestamp without time zone":
		return 1114
	case "timestamptz", "timestamp with time zone":
		return 1184
	case "interval":
		return 1186
	case "timetz", "time with time zone":
		return 1266
	case "numeric", "decimal", "dec":
		return oidNumeric
	case "uuid":
		return 2950
	case "jsonb":
		return 3802
	}
	return 0
}

// typeName reads the name of a type, with or without pg_catalog. modified means that it has a length or a precision. ok
// is false for unsupported types, including arrays.
func (p *names) typeName() (oid uint32, modified, ok bool) {
	name := ""
	for p.tok.kind == word && !p.is("as") {
		if name != "" {
			name += " "
		}
		name += Lower(p.text())
		p.advance()
		switch {
		case name == "pg_catalog" && p.acceptSymbol('.'):
			name = ""
		case p.acceptSymbol('('):
			modified = true
			for p.tok.kind == number || p.isSymbol(',') {
				p.advance()
			}
			if !p.acceptSymbol(')') {
				return 0, modified, false
			}
		}
	}
	oid = typeOID(name)
	if oid == oidFloat8 && modified { // float(p) is one of two types
		return 0, modified, false
	}
	return oid, modified, oid != 0 && !p.isSymbol('[') && !p.isSymbol('.')
}
