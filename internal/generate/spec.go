package generate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxSpec is the largest specification in bytes.
const maxSpec = 1 << 20

// Spec specifies a data set.
type Spec struct {
	Tables []TableSpec `yaml:"tables"`
}

// TableSpec specifies a table.
type TableSpec struct {
	Name    string       `yaml:"name"`
	Rows    int64        `yaml:"rows"`
	Columns []ColumnSpec `yaml:"columns"`
}

// ColumnSpec specifies a column. Which parameters apply depends on the kind; nil = not given.
type ColumnSpec struct {
	Name     string    `yaml:"name"`
	Kind     string    `yaml:"kind"`
	Start    *float64  `yaml:"start"`    // key: the first key; default 0
	Table    *string   `yaml:"table"`    // reference: the table with the key
	Heavy    *Heavy    `yaml:"heavy"`    // reference: a unit with extreme contributions
	Min      *float64  `yaml:"min"`      // integer, float: the smallest value
	Max      *float64  `yaml:"max"`      // integer: the largest value; float: the end, exclusive; zipf: the largest rank
	Mean     *float64  `yaml:"mean"`     // normal
	SD       *float64  `yaml:"sd"`       // normal: the standard deviation
	Exponent *float64  `yaml:"exponent"` // zipf, reference: rank k has a probability proportional to k^-exponent
	Decimals *int      `yaml:"decimals"` // float, normal: digits after the point; default all
	Values   []*string `yaml:"values"`   // text; none is nil
	Weights  []float64 `yaml:"weights"`  // text: one for each value; default equal
	From     *string   `yaml:"from"`     // date: the first day
	To       *string   `yaml:"to"`       // date: the last day
	Nulls    *float64  `yaml:"nulls"`    // the share of NULLs
	Outliers *Outliers `yaml:"outliers"` // numbers
}

// Heavy is a unit that has an exact number of rows; the other rows belong to the other units.
type Heavy struct {
	Key  *float64 `yaml:"key"` // default: the first key of the table
	Rows int64    `yaml:"rows"`
}

// Outliers replaces a share of the values.
type Outliers struct {
	Share float64 `yaml:"share"`
	Value float64 `yaml:"value"`
}

// Parse reads a specification. Unknown and repeated keys are errors, and so is everything that cannot be generated.
func Parse(data []byte) (spec Spec, err error) {
	defer func() { // the YAML library may panic on hostile files
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid YAML: the parser failed (%v)", r)
		}
	}()
	if len(data) > maxSpec {
		return Spec{}, fmt.Errorf("the specification has %d bytes: at most %d are allowed", len(data), maxSpec)
	}
	if err := refuseAliases(data); err != nil {
		return Spec{}, err
	}
	d := yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField())
	if err := d.Decode(&spec); err != nil && !errors.Is(err, io.EOF) {
		return Spec{}, syntaxError(err)
	}
	return spec, spec.check()
}

// refuseAliases returns an error for YAML anchors, with which a small file can describe a large one, and for several
// documents.
func refuseAliases(data []byte) error {
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return syntaxError(err)
	}
	if len(tree.Docs) > 1 {
		return fmt.Errorf("the specification holds %d YAML documents: keep one", len(tree.Docs))
	}
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		for _, kind := range []ast.NodeType{ast.AnchorType, ast.AliasType, ast.MergeKeyType, ast.TagType} {
			if found := ast.Filter(kind, doc.Body); len(found) > 0 {
				return fmt.Errorf("line %d: YAML anchors, aliases and tags are not supported: write the value itself", found[0].GetToken().Position.Line)
			}
		}
	}
	return nil
}

// syntaxError keeps the message of the YAML library and leaves out its excerpt of the file.
func syntaxError(err error) error {
	first, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
	return fmt.Errorf("invalid YAML: %s", first)
}
