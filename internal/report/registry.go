package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Deployment is what dpwatch knows of an engine for the public registry of deployments of differential privacy
// (registry.opendp.org). An empty text is left to people.
type Deployment struct {
	Engine       string
	Since        string // day of the first captured query: 2026-01-31
	Variant      string // one of Variants
	Parameters   Parameters
	Meaning      string // of the parameters
	Unit         string
	Neighbours   string // what adjacent datasets are
	Mechanisms   string
	Composition  string
	Apportioning string // of privacy loss to analysts
	Audit        string // what was audited, and what was found
	Report       string // title of the report
	Year         int    // of the report
}

// Parameters are those of the privacy loss; 0 = not given.
type Parameters struct{ Epsilon, Delta, Rho float64 }

// The variants of differential privacy in the registry that claims can be of.
const (
	PureDP        = "Pure DP"
	ApproximateDP = "Approximate DP"
	ZeroCDP       = "Zero-concentrated DP"
	CustomDP      = "Custom"
)

// ask is the value of a field that only people know.
func ask(text string) string { return "TODO: " + text }

// of names the engine, if it has a name: the default one is its address.
func (d *Deployment) of() string {
	if d.Engine == "" || strings.HasPrefix(d.Engine, "@") {
		return ""
	}
	return " that the engine " + d.Engine + " serves"
}

// or returns a text, or what people are asked for.
func or(text, question string) string {
	if text == "" {
		return ask(question)
	}
	return text
}

// YAML returns the record of a deployment. Fields that only people know are "TODO: ..."; where the schema has a fixed
// list of values, a comment is, beside a value or in the place of the field.
func (d Deployment) YAML() []byte {
	var r record
	r.comment(0, "A draft for https://registry.opendp.org, made by dpwatch. Fill in what is marked with TODO, and read everything")
	r.comment(0, "else before you publish it: it names tables, functions and what was found.")
	r.text(0, "url_slug", ask("product, curator and year, in lower case with hyphens"))
	r.open(0, "deployment")

	r.open(1, "basic")
	r.text(2, "name", ask("the data product"+d.of()))
	r.line(2, "data_curators:")
	r.text(2, "- data_curator_name", ask("who publishes it"))
	r.choice(3, "data_curator_type", "Industry", "Government, Industry or Nonprofit?")
	r.text(2, "description", ask("what it is, in one or two sentences"))
	r.text(2, "intended_use", ask("what it is for"))
	r.choice(2, "data_product_type", "SQL queries", "right? or is it what is made from the answers?")
	r.text(2, "data_product_region", ask("where the people live, or whose law applies"))
	r.comment(2, "TODO: data_product_sector: Technology, Healthcare, Education, Government, Energy or Finance")
	r.choice(2, "publication_date", d.Since, "the first publication; dpwatch has seen queries since that day")

	r.open(1, "dp_variant")
	if d.Variant == "" {
		r.comment(2, "TODO: variant_name: Pure DP, Approximate DP, Zero-concentrated DP, Renyi DP or Custom; no query has a claim")
	} else {
		r.text(2, "variant_name", d.Variant)
	}
	r.text(2, "data_domain", ask("which datasets are possible"))
	r.text(2, "unprotected_quantities", ask("what is published without noise"))

	r.open(1, "privacy_loss")
	r.text(2, "privacy_unit", or(d.Unit, "whose data is protected"))
	r.text(2, "privacy_unit_details", or(d.Neighbours, "what adjacent datasets are"))
	r.comment(2, "TODO: number_of_privacy_units: how many there are, about")
	if d.Parameters == (Parameters{}) {
		r.comment(2, "TODO: privacy_parameters: {epsilon: , delta: , rho: }")
	} else {
		r.open(2, "privacy_parameters")
		for _, p := range []struct {
			name  string
			value float64
		}{{"epsilon", d.Parameters.Epsilon}, {"delta", d.Parameters.Delta}, {"rho", d.Parameters.Rho}} {
			if p.value > 0 {
				r.line(3, p.name+": "+decimal(p.value))
			}
		}
	}
	r.text(2, "privacy_parameters_details", or(d.Meaning, "what the parameters bound"))

	r.open(1, "deployment_model")
	r.choice(2, "model_name", "Central", "right? the engine reads the raw data in a database")
	r.text(2, "trust_assumptions", ask("who may see the raw data, the answers and the reports"))
	r.text(2, "actors", ask("who they are"))
	r.choice(2, "release_type", "Many releases", "right? each answer is one")
	r.comment(2, "TODO: data_source_type: Static or Dynamic")
	r.choice(2, "access_type", "Interactive", "right? clients send queries")
	r.text(2, "access_type_details", or(d.Apportioning, "how privacy loss is apportioned to analysts"))

	r.open(1, "implementation")
	r.text(2, "preprocessing_and_hyperparameter_tuning", ask("what was done with the data before"))
	r.text(2, "mechanisms", strings.TrimSpace(d.Mechanisms+" "+ask("the library with its version, and what is done about floating point and timing")))
	r.text(2, "composition", or(d.Composition, "how the loss of several answers is added up"))
	r.text(2, "post_processing", ask("what is done with noisy values"))
	r.text(2, "justification", ask("how these choices were made"))
	r.text(2, "utility", ask("how accurate the answers are"))
	r.text(2, "additional_information", d.Audit)

	r.open(1, "administrative")
	r.open(2, "evidence_sources")
	r.open(3, "dpwatch_report")
	r.choice(4, "evidence_source_type", "Authorized organizational attestation", "if the report is published; otherwise remove it")
	r.open(4, "misc")
	r.text(5, "title", d.Report)
	r.line(5, "year: "+strconv.Itoa(d.Year))
	r.text(5, "howpublished", ask("where the report, its manifest and the public key are"))
	r.text(2, "status", "Draft")
	r.line(2, "registry_authors:")
	r.line(2, "- "+strconv.Quote(ask("who fills in this record")))
	r.choice(2, "tier", "2", "3 if all fields are filled in")
	return []byte(r.String())
}

// decimal writes a number as YAML 1.1 and 1.2 both read it: a mantissa with a point.
func decimal(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	mantissa, exponent, has := strings.Cut(text, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if has {
		mantissa += "e" + exponent
	}
	return mantissa
}

// record writes YAML: keys of this file, and texts of which nothing is known.
type record struct{ strings.Builder }

func (r *record) line(depth int, text string) {
	fmt.Fprintf(r, "%s%s\n", strings.Repeat("  ", depth), text)
}

func (r *record) open(depth int, key string)     { r.line(depth, key+":") }
func (r *record) comment(depth int, text string) { r.line(depth, "# "+text) }

// choice writes a value that the schema has a list or a form of, with a question beside it. All but numbers
// are quoted.
func (r *record) choice(depth int, key, value, question string) {
	if _, err := strconv.Atoi(value); err != nil {
		value = strconv.Quote(value)
	}
	r.line(depth, key+": "+value+" # TODO: "+question)
}

// recordWidth is where long texts are broken.
const recordWidth = 100

// text writes a text: quoted, or folded if it is long.
func (r *record) text(depth int, key, text string) {
	words := strings.Fields(strings.Map(printable, text))
	if short := strings.Join(words, " "); len(short) <= recordWidth {
		r.line(depth, key+": "+quoted(short))
		return
	}
	r.line(depth, key+": >-")
	for len(words) > 0 {
		line := words[0]
		n := 1
		for n < len(words) && len(line)+1+len(words[n]) <= recordWidth {
			line += " " + words[n]
			n++
		}
		r.line(depth+1, line)
		words = slices.Delete(words, 0, n)
	}
}

// printable leaves out what YAML does not allow in texts.
func printable(c rune) rune {
	if c != '\n' && c < ' ' || c >= 0x7f && c < 0xa0 || c == 0xfeff || c == 0xfffd || c == 0x2028 || c == 0x2029 || c > 0xffff {
		return '?'
	}
	return c
}

// quoted returns a text in double quotes, as YAML reads it.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
