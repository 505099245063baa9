"""The pure middle: from a Snapshot to what is created, applied, deleted and said."""
