package tap

import (
	"fmt"
	"os"
	"testing"
)

func dump(b []byte) (s string) {
	for len(b) >= 5 {
		n := int(b[1])<<24 | int(b[2])<<16 | int(b[3])<<8 | int(b[4])
		s += fmt.Sprintf("%c %.30q %d\n", b[0], b[5:n+1], n+1)
		b = b[n+1:]
	}
	return s
}

func TestDump(t *testing.T) {
	dumping = true
	var a uint64
	var b int
	fmt.Sscan(os.Getenv("CASE"), &b, &a)
	converse(t, a, b, 600)
}
