"""A Kubernetes cluster for the demo and the tests, brought up on the machine at hand. Not part of the product."""
