"""From what was observed to what is said: conditions, counts and the diagnosis of failures, all pure."""
