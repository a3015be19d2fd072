package results

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file reads numbers and characters of texts that have no fixed form: arrays of random length, documents with
// optional parts, hashes, and what the server says beside a result. Columns of texts with a fixed form are measures, see
// text_numbers.go.

// What is read of each source of texts: what the server says, and the first columns that hold texts.
const (
	firstNumber = iota
	lastNumber
	smallestNumber
	largestNumber
	totalOfNumbers
	numberReadings // their number
)

// Limits.
const (
	maxPlaceColumns = 8 // whose digits after the point are read
	textColumns     = 2 // sources beside what the server says
	wordReadings    = 16
	maxTextRows     = 64
	maxTextBytes    = 4 << 10 // of a text that are read
	maxNumbers      = 512     // of a result
)

// What is read of the characters of a text: how many bytes it has, how many of these are of each class, the first ones
// and the last ones.
const (
	textLength = iota
	upperCase
	lowerCase
	digits
	otherBytes
	countReadings // their number

	firstBytes = 64
	lastBytes  = 8
	// TextCharacters is how many readings these are.
	TextCharacters = countReadings + firstBytes + lastBytes
)

// PlaceReadings is how many numbers of digits after the point are read, two of each column.
const PlaceReadings = 2 * maxPlaceColumns

// TextReadings is how many numbers are read of the texts of a result: the readings of each source, and the first number
// after each of the words that come first before numbers, such as the keys of a document.
const TextReadings = (1+textColumns)*numberReadings + wordReadings

// TextNumbers appends to dst the numbers of the texts of a result, absent where there are none: TextReadings codes, or
// none if the result has no such text.
func (r *Reader) TextNumbers(o *outcome.Outcome, dst []code.Code) []code.Code {
	left := maxNumbers
	read := func(source int, text string) {
		if len(dst) == 0 {
			for range TextReadings {
				dst = append(dst, code.Category(code.Absent))
			}
		}
		of, afterWord := dst[source*numberReadings:][:numberReadings], dst[TextReadings-wordReadings:]
		eachNumber(text[:min(len(text), maxTextBytes)], func(word string, x float64) {
			if left--; left < 0 {
				return
			}
			c := code.Number(x)
			if word != "" {
				if i := r.wordReading(source, word); i < wordReadings && !code.IsNumber(afterWord[i]) {
					afterWord[i] = c
				}
			}
			if !code.IsNumber(of[firstNumber]) {
				of[firstNumber], of[smallestNumber], of[largestNumber], of[totalOfNumbers] = c, c, c, 0
			}
			of[lastNumber] = c
			of[smallestNumber], of[largestNumber] = min(of[smallestNumber], c), max(of[largestNumber], c)
			of[totalOfNumbers] = code.Number(of[totalOfNumbers] + c)
		})
	}
	if o.Message != "" {
		read(0, o.Message)
	}
	for k, text := range r.freeTexts(o) {
		read(k, text)
	}
	return dst
}

// freeTexts returns the texts without a fixed form in the first rows of a result, by their source.
func (r *Reader) freeTexts(o *outcome.Outcome) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		if w := WidthOf(o); w < 0 || w != r.Width {
			return
		}
		for i := range o.Rows[:min(len(o.Rows), maxTextRows)] {
			row := o.Rows[i]
			for j, c := range r.Measures {
				if c < len(row) && row[c].Kind == outcome.Text && r.Forms[j].Parts() == 0 && (j == 0 || r.Measures[j-1] != c) {
					if k := r.textSource(c); k > 0 && !yield(k, row[c].Text) {
						return
					}
				}
			}
		}
	}
}

// TextCharacters appends to dst what is read of the characters of the first text of the first such column:
// TextCharacters bytes, each one more than it stands for and 0 for none; or nothing if there is no such text.
func (r *Reader) TextCharacters(o *outcome.Outcome, dst []byte) []byte {
	for k, text := range r.freeTexts(o) {
		if k != 1 {
			continue
		}
		var counts [countReadings]int
		counts[textLength] = len(text)
		for i := range len(text) {
			switch c := text[i]; {
			case 'A' <= c && c <= 'Z':
				counts[upperCase]++
			case 'a' <= c && c <= 'z':
				counts[lowerCase]++
			case isDigit(c):
				counts[digits]++
			default:
				counts[otherBytes]++
			}
		}
		for _, n := range counts {
			dst = append(dst, more(n))
		}
		for i := range firstBytes {
			dst = append(dst, at(text, i))
		}
		for i := range lastBytes {
			dst = append(dst, at(text, len(text)-1-i))
		}
		break
	}
	return dst
}

// Places appends to dst, for the first measured columns, the fewest and the most digits after the point in the numbers of
// a result: PlaceReadings bytes as those of TextCharacters. It appends nothing if fewer than two columns have such digits:
// the form of the result shows those of one.
func (r *Reader) Places(o *outcome.Outcome, dst []byte) []byte {
	if w := WidthOf(o); len(r.Measures) < 2 || w < 0 || w != r.Width {
		return dst
	}
	var of [PlaceReadings]byte
	columns := 0
	for i, c := range r.placeColumns() {
		fewest, most := &of[2*i], &of[2*i+1]
		for _, row := range o.Rows {
			if c < len(row) && row[c].Places > 0 {
				b := more(int(row[c].Places) - 1)
				*most = max(*most, b)
				if *fewest == 0 || b < *fewest {
					*fewest = b
				}
			}
		}
		if *most > 0 {
			columns++
		}
	}
	if columns < 2 {
		return dst
	}
	return append(dst, of[:]...)
}

// placeColumns are the columns whose digits after the point are read.
func (r *Reader) placeColumns() []int {
	columns := slices.Compact(slices.Clone(r.Measures)) // a text with several numbers is as many measures
	return columns[:min(len(columns), maxPlaceColumns)]
}

// more returns a number and one, at most 255.
func more(n int) byte { return byte(min(n+1, math.MaxUint8)) }

// at returns more of a byte of a text, 0 where there is none.
func at(text string, i int) byte {
	if i < 0 || i >= len(text) {
		return 0
	}
	return more(int(text[i]))
}

// textSource returns the number of a column among those that are read, 0 if it is not one of them.
func (r *Reader) textSource(column int) int {
	i := slices.Index(r.texts, column)
	if i < 0 {
		if len(r.texts) == textColumns {
			return 0
		}
		i, r.texts = len(r.texts), append(r.texts, column)
	}
	return i + 1
}

// wordReading returns the number of a word of a source; those from wordReadings on are not read.
func (r *Reader) wordReading(source int, word string) int {
	c := int(code.CategoryOf(r.before.Code(strconv.Itoa(source) + word)))
	if c < code.FirstText { // the dictionary is full
		return wordReadings
	}
	return c - code.FirstText
}

// TextReadingName says which of TextNumbers' codes one is, or after these which of the bytes of TextCharacters and Places.
// The words of texts are withheld.
func (r *Reader) TextReadingName(i int) withheld.Text {
	switch {
	case i >= TextReadings+TextCharacters:
		i -= TextReadings + TextCharacters
		which := [2]string{"the fewest", "the most"}[i%2] + " digits after the point"
		if columns := r.placeColumns(); i/2 < len(columns) {
			which += " in column " + r.ColumnName(columns[i/2])
		}
		return withheld.Public(which)
	case i >= TextReadings:
		return withheld.Public(characterReading(i-TextReadings) + " in " + r.sourceName(1))
	case i < TextReadings-wordReadings:
		which := [numberReadings]string{"the first number", "the last number", "the smallest number", "the largest number", "the total of the numbers"}[i%numberReadings]
		return withheld.Public(which + " in " + r.sourceName(i/numberReadings))
	}
	i -= TextReadings - wordReadings
	if i >= len(r.before.Words) {
		return withheld.Public("a number in a text")
	}
	word := r.before.Words[i]
	return withheld.Sprintf("the number after %s in %s", withheld.New(strconv.Quote(word[1:]), "a word "+withheld.Mark), withheld.Public(r.sourceName(int(word[0]-'0'))))
}

// characterReading says which of TextCharacters one is.
func characterReading(i int) string {
	switch {
	case i < countReadings:
		return [countReadings]string{"the number of bytes", "the number of capital letters", "the number of small letters", "the number of digits", "the number of other signs"}[i]
	case i < countReadings+firstBytes:
		return fmt.Sprintf("character %d", i-countReadings+1)
	}
	return fmt.Sprintf("character %d from the end", i-countReadings-firstBytes+1)
}

// sourceName names a source of texts.
func (r *Reader) sourceName(source int) string {
	if source == 0 {
		return "what the server says beside the answer (an error or a notice)"
	}
	if source > len(r.texts) {
		return "a text"
	}
	return "the texts of column " + r.ColumnName(r.texts[source-1])
}

// eachNumber calls f for each number in a text, with the word before it, if no other number comes between.
func eachNumber(text string, f func(word string, x float64)) {
	word := ""
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case isDigit(c):
			n, mixed := numberAt(text[i:])
			if !mixed {
				from := i
				if i > 0 && text[i-1] == '-' && (i == 1 || !isLetter(text[i-2]) && !isDigit(text[i-2])) {
					from--
				}
				x, err := strconv.ParseFloat(text[from:i+n], 64)
				if err == nil {
					f(word, x)
				}
				word = ""
			}
			i += n
		case isLetter(c):
			from, mixed := i, false
			for i < len(text) && (isLetter(text[i]) || isDigit(text[i])) {
				mixed = mixed || isDigit(text[i])
				i++
			}
			if word = text[from:i]; mixed || len(word) > maxWord {
				word = ""
			}
		default:
			i++
		}
	}
}
