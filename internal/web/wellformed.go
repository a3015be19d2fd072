package web

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// errText is the fault of a request with a text that no name, identifier or reason can have. PostgreSQL does not take
// it either.
var errText = errors.New("texts must be UTF-8 without NUL")

// requireText refuses requests whose path or parameters cannot be read, or are no text, so that no handler has to check
// that.
func requireText(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkText(r); err != nil {
			code := http.StatusBadRequest
			if errors.As(err, new(*http.MaxBytesError)) {
				code = http.StatusRequestEntityTooLarge
			}
			http.Error(w, "dpwatch: the request cannot be read: "+err.Error(), code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func checkText(r *http.Request) error {
	if !isText(r.URL.Path) {
		return errText
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" && r.Method == http.MethodPost {
		if err := r.ParseMultipartForm(maxBodyBytes); err != nil {
			return withoutInput(err)
		}
	} else if err := r.ParseForm(); err != nil {
		return withoutInput(err)
	}
	for name, all := range r.Form {
		if !isText(name) {
			return errText
		}
		for _, value := range all {
			if !isText(value) {
				return errText
			}
		}
	}
	return nil
}

// withoutInput returns an error that does not quote the request.
func withoutInput(err error) error {
	if errors.As(err, new(*http.MaxBytesError)) {
		return err
	}
	if escape := url.EscapeError(""); errors.As(err, &escape) {
		return errors.New("invalid percent-encoding")
	}
	return errors.New("invalid parameters")
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
