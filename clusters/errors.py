"""The one error of this package that is meant for people."""


class ClusterError(Exception):
    """A cluster could not be brought up or used. The message says what is wrong, where, and what would be right."""
