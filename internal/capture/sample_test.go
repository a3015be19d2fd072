package capture_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// A flood of one client does not displace the samples of others, and others displace the flood's.
func TestSamplesOfSeveralClients(t *testing.T) {
	t.Parallel()
	var s capture.Samples
	add := func(user, shape string) bool {
		wanted := s.Wants("r", user, "d", "app")
		s.Add(capture.Sample{Reason: "r", User: user, Database: "d", Application: "app", Shape: shape})
		return wanted
	}
	for i := range 100 {
		if wanted := add("flood", fmt.Sprint("shape ", i)); wanted != (i < capture.SamplesPerReason) {
			t.Errorf("sample %d of one client is wanted: %v", i, wanted)
		}
	}
	for _, user := range []string{"ann", "bob"} {
		if !add(user, "another") || add(user, "another") {
			t.Errorf("the first sample of %s is not wanted, or its second is", user)
		}
	}
	of := map[string]int{}
	for _, x := range s.Take() {
		of[x.User]++
	}
	if of["flood"] != 3 || of["ann"] != 1 || of["bob"] != 1 {
		t.Errorf("samples by user: %v; want 3 of the flood, one of ann and bob", of)
	}
	if more := s.Take(); len(more) > 0 {
		t.Errorf("taken twice: %v", more)
	}
}

// The same sample counts once, and has its last time.
func TestSampleIsHeldOnce(t *testing.T) {
	t.Parallel()
	var s capture.Samples
	for i := range 3 {
		s.Add(capture.Sample{Reason: "r", Shape: "SELECT ?", At: time.Unix(int64(i), 0)})
	}
	if all := s.Take(); len(all) != 1 || all[0].At.Unix() != 2 {
		t.Errorf("%+v", all)
	}
}

// Clients choose names and texts: their length and encoding are bounded, and so is the number of reasons.
func TestSamplesAreBounded(t *testing.T) {
	t.Parallel()
	var s capture.Samples
	long := strings.Repeat("\x00\xff\u00e4x", 10_000)
	for i := range 1000 {
		x := capture.SampleOf(fmt.Sprint("reason ", i), capture.Query{SQL: "SELECT " + long, User: long, Database: long, ApplicationName: long}, i%2 == 0)
		x.Detail, x.Advice = long, long
		s.Add(x)
	}
	all, size := s.Take(), 0
	for _, x := range all {
		for _, text := range []string{x.User, x.Database, x.Application, x.Shape, x.Detail, x.Advice, x.Text} {
			size += len(text)
			if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
				t.Fatalf("%.100q", text)
			}
		}
	}
	if len(all) != 64 || size > 64*4000 {
		t.Errorf("%d samples of %d bytes", len(all), size)
	}
	var none *capture.Samples
	none.Add(capture.Sample{Reason: "r"})
	if none.Wants("r", "", "", "") || none.Take() != nil {
		t.Error("nil holds samples")
	}
}
