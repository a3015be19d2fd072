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

// minToken is the length of the shortest accepted token, in bytes: 16 random hexadecimal digits cannot be guessed over a
// network.
const minToken = 16

// tokens are the accepted bearer tokens, hashed, so that comparison time does not depend on their lengths.
type tokens [][sha256.Size]byte

// CheckTokenFile returns an error unless the file holds tokens as Options.TokenFile requires.
func CheckTokenFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := parseTokens([][]byte{content}); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// parseTokens reads one token per line; several tokens allow rotation. Errors contain no part of a token.
func parseTokens(contents [][]byte) (tokens, error) {
	var out tokens
	number := 0
	for line := range strings.Lines(string(contents[0])) {
		number++
		token := strings.TrimSpace(line)
		switch {
		case token == "":
			continue
		case len(token) < minToken:
			return nil, fmt.Errorf("line %d: the token has %d characters and needs at least %d: openssl rand -hex 32 makes one", number, len(token), minToken)
		case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
			return nil, fmt.Errorf("line %d: a token must be printable ASCII without spaces, because it is sent in an HTTP header", number)
		}
		out = append(out, sha256.Sum256([]byte(token)))
	}
	if len(out) == 0 {
		return nil, errors.New("no token in it: openssl rand -hex 32 makes one")
	}
	return out, nil
}

// accept reports whether a request has one of the tokens. Its time depends only on the number of tokens.
func (ts tokens) accept(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	found := 0
	for i := range ts {
		found |= subtle.ConstantTimeCompare(ts[i][:], sum[:])
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}
