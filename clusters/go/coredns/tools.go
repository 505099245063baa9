//go:build tools

// Package tools names the command that is built from this module, so that go.mod and go.sum pin all of it.
package tools

import _ "github.com/coredns/coredns"
