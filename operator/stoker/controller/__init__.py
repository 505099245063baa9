"""The operator's process: kopf wiring, the reconcile loop, metrics, health."""
