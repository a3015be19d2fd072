package textnumber

import (
	"strconv"
	"strings"
)

// number is a number as written in a text.
type number struct {
	value    float64
	decimals int  // digits after the point; -1 if it has an exponent
	padded   bool // it has unnecessary zeros after the point
	minus    minus
}

// minus is the notation of a negative amount.
type minus uint8

const (
	positive    minus = iota
	outerMinus        // before the currency
	innerMinus        // between the currency and the digits
	parentheses       // around all
)

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// digitsAt returns the end of the digits that begin at i.
func digitsAt(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

// numberAt parses the number at i and returns its end, or i if there is none.
func numberAt(s string, i int) (n number, end int) {
	at := i
	if at < len(s) && s[at] == '-' {
		at++
	}
	whole := digitsAt(s, at)
	if whole == at || s[at] == '0' && whole > at+1 {
		return n, i
	}
	end = whole
	if end < len(s) && s[end] == '.' {
		if last := digitsAt(s, end+1); last > end+1 {
			n.decimals, n.padded = last-end-1, s[last-1] == '0'
			end = last
		}
	}
	if end < len(s) && (s[end] == 'e' || s[end] == 'E') {
		at := end + 1
		if at < len(s) && (s[at] == '+' || s[at] == '-') {
			at++
		}
		if last := digitsAt(s, at); last > at {
			end, n.decimals, n.padded = last, -1, false
		}
	}
	value, err := strconv.ParseFloat(s[i:end], 64)
	if n.value = value; err != nil { // out of range
		return n, i
	}
	return n, end
}

// scanSeveral parses a text of numbers with other characters between them. Digits in a word are not numbers: a7, 7th.
func scanSeveral(s string, dst []number, fixed []string, wanted bool) ([]number, []string, bool) {
	var texts []string
	from, found := 0, 0
	around := func(text string) bool {
		if wanted {
			texts = append(texts, text)
			return true
		}
		found++
		return fixed == nil || found <= len(fixed) && fixed[found-1] == text
	}
	for i := 0; i < len(s); {
		if !isDigit(s[i]) && s[i] != '-' || i > 0 && inWord(s[i-1]) {
			i++
			continue
		}
		n, end := numberAt(s, i)
		if end == i || end < len(s) && inWord(s[end]) {
			for i++; i < len(s) && inWord(s[i]); i++ {
			}
			continue
		}
		if !around(s[from:i]) || len(dst) == MaxParts {
			return nil, nil, false
		}
		dst = append(dst, n)
		from, i = end, end
	}
	return dst, texts, around(s[from:]) && len(dst) > 0
}

// inWord reports whether a character next to digits makes them part of a word.
func inWord(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '.' || c >= 0x80
}

// scanMoney parses an amount: a number with a currency before or after it, a minus sign or parentheses, and thousands
// separators. comma reports that the decimal point is a comma. It returns the texts before and after the digits,
// without the sign.
func scanMoney(s string, comma bool) (n number, before, behind string, ok bool) {
	m := positive
	if len(s) > 2 && s[0] == '(' && s[len(s)-1] == ')' {
		m, s = parentheses, s[1:len(s)-1]
	}
	if strings.HasPrefix(s, "-") && m == positive {
		m, s = outerMinus, s[1:]
	}
	if before, s, ok = cutCurrency(s, false); !ok {
		return n, "", "", false
	}
	if strings.HasPrefix(s, "-") && m == positive && before != "" {
		m, s = innerMinus, s[1:]
	}
	if behind, s, ok = cutCurrency(s, true); !ok {
		return n, "", "", false
	}
	n, ok = amount(s, comma)
	if n.minus = m; m != positive {
		n.value = -n.value
	}
	return n, before, behind, ok
}

// cutCurrency removes a currency from one end of an amount: a sign, or a word separated by a blank.
func cutCurrency(s string, end bool) (currency, rest string, ok bool) {
	other := func(r rune) bool { return r != '-' && (r > '9' || r < '0') && r != '.' }
	at := strings.IndexFunc(s, func(r rune) bool { return !other(r) })
	if end {
		at = strings.LastIndexFunc(s, func(r rune) bool { return !other(r) }) + 1
	}
	if at < 0 {
		return "", s, false
	}
	if currency, rest = s[:at], s[at:]; end {
		currency, rest = s[at:], s[:at]
	}
	word := strings.Trim(currency, " \u00a0\u202f")
	if word == "" || strings.ContainsRune("$€£¥₹¢₽₩₺₫₴₦", []rune(word)[0]) && len([]rune(word)) == 1 {
		return currency, rest, word != "" || currency == ""
	}
	for _, c := range word {
		if c < 'A' || c > 'Z' && c < 'a' || c > 'z' {
			return "", s, false
		}
	}
	return currency, rest, len(word) <= 3 && len(word) < len(currency)
}

// amount parses digits with thousands separators.
func amount(s string, comma bool) (n number, ok bool) {
	separator, point := byte(','), byte('.')
	if comma {
		separator, point = point, separator
	}
	var plain [64]byte
	digits, group, groups := plain[:0], 0, 0
	i := 0
	for ; i < len(s) && s[i] != point; i++ {
		switch {
		case isDigit(s[i]):
			group++
			digits = append(digits, s[i])
		case s[i] == separator && group > 0 && (groups == 0 && group <= 3 || group == 3):
			groups, group = groups+1, 0
		default:
			return n, false
		}
	}
	if len(digits) == 0 || len(digits) > 30 || groups > 0 && group != 3 || digits[0] == '0' && len(digits) > 1 {
		return n, false
	}
	if i < len(s) {
		last := digitsAt(s, i+1)
		if last != len(s) || last == i+1 || last > i+30 {
			return n, false
		}
		n.decimals, n.padded = last-i-1, s[last-1] == '0'
		digits = append(append(digits, '.'), s[i+1:]...)
	}
	value, err := strconv.ParseFloat(string(digits), 64)
	n.value = value
	return n, err == nil
}
