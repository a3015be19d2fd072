// Package recognize recognizes captured queries: each text is parsed once as long as it is remembered, and of a flood
// of texts that look alike only a sample.
package recognize
