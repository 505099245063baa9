"""The small process beside an engine: honest probes, warm-up, drain, and one set of metrics for every engine."""

import signal
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""What asks the agent to stop. Held back from its first moment until its supervisor can answer."""
