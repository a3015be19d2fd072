package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// minToken is the length of the shortest accepted token, in bytes: 16 random hexadecimal digits cannot be guessed over
// a network.
const minToken = 16

// maxName bounds the name of a token.
const maxName = 63

// tokens are the accepted tokens, hashed, so that comparison time does not depend on their lengths.
type tokens []token

type token struct {
	sum [sha256.Size]byte
	id  Identity
}

// CheckTokenFile returns an error unless the file holds tokens as Options.TokenFile requires.
func CheckTokenFile(path string) error {
	_, err := readTokens(path)
	return err
}

// FirstToken returns the first token of a file, for a client on the same machine.
func FirstToken(path string) (string, error) {
	content, err := readTokens(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(content) {
		if fields := strings.Fields(line); len(fields) > 0 {
			return fields[len(fields)-1], nil
		}
	}
	return "", errNoToken
}

// readTokens returns the content of a valid file.
func readTokens(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if _, err := parseTokens([][]byte{content}); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return string(content), nil
}

var errNoToken = errors.New("no token in it: openssl rand -hex 32 makes one")

// parseTokens reads one token per line; several tokens allow rotation. Before the token, a line may have its roles and
// then the name of its user; a token alone is an operator's. Errors contain no part of a token.
func parseTokens(contents [][]byte) (tokens, error) {
	var out tokens
	number := 0
	for line := range strings.Lines(string(contents[0])) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		one, err := parseToken(fields, number)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, errNoToken
	}
	return out, nil
}

// parseToken reads the fields of a line: TOKEN, ROLES TOKEN, or ROLES NAME TOKEN.
func parseToken(fields []string, number int) (t token, err error) {
	text := fields[len(fields)-1]
	t = token{sha256.Sum256([]byte(text)), Identity{Name: fmt.Sprintf("token %d", number), Roles: Operator}}
	if len(fields) > 3 {
		return t, errors.New("more than three words: write TOKEN, ROLES TOKEN or ROLES NAME TOKEN; a token must be printable ASCII without spaces, because it is sent in an HTTP header")
	}
	if len(fields) > 1 {
		if t.id.Roles, err = parseRoles(fields[0]); err != nil {
			return t, err
		}
	}
	if len(fields) == 3 {
		if t.id.Name = fields[1]; len(t.id.Name) > maxName {
			return t, fmt.Errorf("the name has more than %d bytes", maxName)
		}
		if !isText(t.id.Name) {
			return t, errors.New("the name must be UTF-8 text")
		}
	}
	switch {
	case len(text) < minToken:
		return t, fmt.Errorf("the token has %d characters and needs at least %d: openssl rand -hex 32 makes one", len(text), minToken)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return t, errors.New("a token must be printable ASCII without spaces, because it is sent in an HTTP header")
	}
	return t, nil
}

// bearer returns whose token a request has. Its time depends only on the number of tokens.
func (ts tokens) bearer(r *http.Request) (Identity, bool) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	id, ok := ts.of(sha256.Sum256([]byte(strings.TrimSpace(text))))
	return id, ok && strings.EqualFold(scheme, "Bearer")
}

// of returns whose token has this hash.
func (ts tokens) of(sum [sha256.Size]byte) (id Identity, found bool) {
	for i := range ts {
		if subtle.ConstantTimeCompare(ts[i].sum[:], sum[:]) == 1 {
			id, found = ts[i].id, true
		}
	}
	return id, found
}
