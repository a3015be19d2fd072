// Package browsertest has the tests of the web pages and of reports in a real Chromium. It is a Go module of its own,
// so that the program does not depend on what drives the browser.
package browsertest
