"""The small process beside an engine: honest probes, warm-up, drain, and one set of metrics for every engine."""
