//go:build tools

// Package tools names the command that is built from this module, so that go.mod and go.sum pin all of it.
package tools

import _ "sigs.k8s.io/lws/cmd"
