package desk

import "testing"

// TestSalt: the salt differs between audits and between processes.
func TestSalt(t *testing.T) {
	t.Parallel()
	a, b := &core{secret: "a"}, &core{secret: "b"}
	k := a.salt("k")
	if again := a.salt("k"); k != again || k == a.salt("l") || k == b.salt("k") || len(k) != 32 {
		t.Error("salts are not of an audit and a process each")
	}
}
