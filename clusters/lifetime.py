"""Ending with the parent: whoever is started by make is not to outlive a make that was killed."""

import ctypes
import os
import signal
from types import FrameType

# Exported by the Makefile alone: a program that somebody put into the background must outlive the shell that did so.
VARIABLE = "STOKER_END_WITH_PARENT"
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have the kernel send SIGTERM when the parent ends, if make asks for that, and let SIGTERM unwind like Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    if os.environ.get(VARIABLE) != "1":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent or parent == 1:
        # It ended before the request was made.
        os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Once: what is being taken down then is not to be interrupted again.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt
