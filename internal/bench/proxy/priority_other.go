//go:build !linux

package proxy

import "errors"

func idlePriority(int) error { return errors.New("measured on Linux only") }
