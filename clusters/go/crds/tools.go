//go:build tools

// Package tools names the modules whose CustomResourceDefinitions the tests install from the module cache, and the
// generator for those that publish Go types alone.
package tools

import (
	_ "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	_ "sigs.k8s.io/controller-tools/cmd/controller-gen"
	_ "sigs.k8s.io/gateway-api/apis/v1"
)
