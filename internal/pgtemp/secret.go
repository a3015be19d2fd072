package pgtemp

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// Secret returns what the server stores for a password (RFC 5803; PostgreSQL manual, pg_authid). It has one
// iteration where the server's default is 4096. The iterations make it slow to guess a password that a person chose.
// They gain nothing for a random one of 130 bits, or one in a test, and each new session of a client would repeat them.
// CREATE ROLE takes the secret in the place of the password.
func Secret(password string) (string, error) {
	const iterations = 1
	salt := make([]byte, 16)
	rand.Read(salt) //nolint:errcheck // it never returns an error
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(keyed(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(salt), encode(stored[:]), encode(keyed(salted, "Server Key"))), nil
}

func keyed(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
