// Package state describes saved states. One description of a part both writes and reads it, so that the two cannot
// differ; reading checks what it reads, because a saved state may be damaged.
package state
