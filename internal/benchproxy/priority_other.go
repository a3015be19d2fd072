//go:build !linux

package main

import "errors"

func idlePriority(int) error { return errors.New("measured on Linux only") }
