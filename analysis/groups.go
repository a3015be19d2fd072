package analysis

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file is how groups and columns are named in reports.

// keyLabel returns a key in words, store_id=17, class="low", and in public its id: see Options.Salt.
func (r *reader) keyLabel(row []outcome.Value, occurrence int) withheld.Text {
	if !r.keyed {
		return withheld.Public("()")
	}
	if len(r.keys) == 0 {
		return withheld.Public("row " + strconv.Itoa(occurrence))
	}
	var parts []string
	for _, c := range r.keys {
		if c < len(row) {
			parts = append(parts, r.columnName(c)+"="+literal(row[c]))
		}
	}
	s := strings.Join(parts, ", ")
	if occurrence > 1 {
		s += " #" + strconv.Itoa(occurrence)
	}
	id := ""
	if r.salt != "" {
		id = groupID(r.salt, s)
	}
	return withheld.New(s, id)
}

// groupID returns the id of a key: a keyed hash, since keys are few enough to be tried one by one against any other.
func groupID(salt, key string) string {
	mac := hmac.New(sha256.New, []byte(salt))
	_, _ = mac.Write([]byte(key)) // never fails
	return hex.EncodeToString(mac.Sum(nil)[:4])
}

// groupName returns the name of the key k: its label, and in public its place in the order in which the keys came, with its id.
func (r *reader) groupName(k int) withheld.Text {
	label := r.labels[k]
	if !r.keyed || len(r.keys) == 0 {
		return label
	}
	public := fmt.Sprintf("group %d of %d", k+1, len(r.labels))
	if id := label.String(); id != "" {
		public += " (id " + id + ")"
	}
	return withheld.New(label.Reveal(), public)
}

// groupWords is groupName within a sentence.
func (r *reader) groupWords(k int) withheld.Text {
	name := r.groupName(k)
	if !r.keyed || len(r.keys) == 0 {
		return withheld.Sprintf("partition %s", name)
	}
	return withheld.New("partition "+name.Reveal(), name.String())
}

// columnName returns the name of a column, or its number where it has none.
func (l *layout) columnName(c int) string {
	if c < len(l.names) && l.names[c] != "" && l.names[c] != "?column?" {
		return code.Shorten(l.names[c])
	}
	return strconv.Itoa(c + 1)
}

// literal returns a value in words.
func literal(v outcome.Value) string {
	switch v.Kind {
	case outcome.Number:
		if v.Num == math.Trunc(v.Num) && math.Abs(v.Num) < 1e15 { // two keys must not look alike
			return strconv.FormatFloat(v.Num, 'f', 0, 64)
		}
		return strconv.FormatFloat(v.Num, 'g', -1, 64)
	case outcome.Bool:
		return strconv.FormatBool(v.Num != 0)
	case outcome.Text:
		return strconv.Quote(code.Shorten(v.Text))
	}
	return "NULL"
}
