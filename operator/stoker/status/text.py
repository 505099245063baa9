"""Text for the status: bounded, in one line, without secrets. What engines print is untrusted and may hold anything."""

import re

from stoker.api.status import MAX_MESSAGE_BYTES

_SECRETS = re.compile(
    r"""hf_[A-Za-z0-9]{8,}
    | \bsk-[A-Za-z0-9_-]{8,}
    | \bgh[pousr]_[A-Za-z0-9]{16,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?
    | (?<=://)[^/\s:@]{1,256}:[^/\s@]{1,256}(?=@)
    | (?i:(?<=bearer\ )|(?<=basic\ ))[A-Za-z0-9._~+/=-]{4,}
    | (?i:(?<=key=)|(?<=token=)|(?<=secret=)|(?<=password=)|(?<=signature=)|(?<=credential=))[^&\s'",;]{1,512}
    | (?i:(?<=key:\ )|(?<=token:\ )|(?<=secret:\ )|(?<=password:\ ))[^\s'",;]{6,512}
    | (?i:(?<=key['"]:\ ['"])|(?<=token['"]:\ ['"])|(?<=secret['"]:\ ['"])|(?<=password['"]:\ ['"]))[^'"]{1,512}
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LOG_PREFIX = re.compile(
    r"""^(?:\((?:EngineCore|APIServer|Worker|ApiServer)[^)]{0,80}\)\s*)?
    (?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+\d\d-\d\d\s\d\d:\d\d:\d\d\s+(?:\[[^\]]{1,80}\]\s*)?)?
    (?:\d{4}-\d\d-\d\d[T\s]\d\d:\d\d:\d\d[.,\d]*Z?\s+)?
    (?:[EWIF]\d{4}\s\d\d:\d\d:\d\d\.\d+\s+)?
    (?:\d+(?:\.\d+){3}\s[DIWEC]\s+)?
    """,
    re.VERBOSE,
)
_ERROR = re.compile(
    r"(?:^|[\s.])(?:[A-Za-z_]{1,64}(?:Error|Exception|Interrupt)|error|fatal|panic)\b\s*:", re.IGNORECASE
)
_NATIVE_ERROR = re.compile(r"^\d+(?:\.\d+){3}\sE\s")
_ECHO = re.compile(
    r"Engine core initialization failed|See root cause above|EngineCore encountered a fatal error"
    r"|The lines above say why|exiting due to model loading error|SystemExit"
)
"""What is said after the cause was named: true of every cause, and so of none."""
_TRACE = re.compile(
    r"""^(?:\((?:EngineCore|APIServer|Worker|ApiServer)[^)]{0,80}\)\s)?
    (?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\s\d\d-\d\d\s\d\d:\d\d:\d\d\s(?:\[[^\]]{1,80}\]\s)?)?
    (?:\s{2,}\S | Traceback\ \(most\ recent | [\s^~]*$)
    | \bresource_tracker\b
    """,
    re.VERBOSE,
)
"""Lines of a traceback under its last one, and what Python says of leaks at its end: they name no cause."""
_AFTER_FILTERS = re.compile(
    r"\.? (?:no new claims to deallocate, )?preemption:.*|\. (?:no new claims to deallocate, )?not found\s*$", re.DOTALL
)
"""What the scheduler appends once no node is left: it tells of other pods, or of nothing that was found."""
_CORE_FAILED = re.compile(r"Engine core initialization failed|EngineCore encountered an issue")
MAX_LINE_BYTES = 400
MAX_SAID_BYTES = 600
"""What a message passes on of the words of others: the way out stands behind them, and must not be cut off."""
KEPT_BYTES = 2048
"""What the kubelet keeps of the end of a log; at this length the first line has lost its beginning."""


def bounded(text: str, limit: int = MAX_MESSAGE_BYTES) -> str:
    """Return ``text`` in one line of at most ``limit`` bytes, cut at a whole character, control characters removed."""
    line = " ".join((text if text.isprintable() else _printable(text)).split())
    encoded = line.encode("utf-8", "replace")
    return line if len(encoded) <= limit else encoded[: limit - 3].decode("utf-8", "ignore") + "..."


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in _ESCAPE.sub("", text))


def redacted(text: str) -> str:
    """Return ``text`` with everything that looks like a credential replaced: tokens, keys, passwords in URLs."""
    return _SECRETS.sub("[redacted]", text)


def passed_on(said: str) -> str:
    """Return what another component said, without credentials, short enough to leave room for the way out."""
    return bounded(redacted(said), MAX_SAID_BYTES)


def scheduler_said(said: str, limit: int = 400) -> str:
    """Return the scheduler's words about nodes, without those about pods that could make room and claims of devices."""
    return bounded(_AFTER_FILTERS.sub("", said).rstrip(". "), limit)


def word(text: str, otherwise: str) -> str:
    """Return ``text`` as a condition's reason; ``otherwise`` where it is no CamelCase word."""
    return text if re.fullmatch(r"[A-Z][A-Za-z0-9]{0,62}", text) else otherwise


def telling_line(words: str) -> str | None:
    """Return the line of an engine's last words that tells most of its end, fit to be shown; None where there is none.

    A Python program names its error in the last line, llama.cpp in the first line of level E; echoes of a cause that
    stands elsewhere are left aside. Time stamps and process numbers in front are cut off, so that the same end reads
    the same twice. None where nothing but a traceback's body is left, as of a vLLM whose core failed first: the node
    keeps 2 KB of the end of a log, and the server's own traceback fills them.
    """
    lines = [line for line in _ESCAPE.sub("", words).splitlines() if line.strip() and not _ECHO.search(line)]
    python = [line for line in lines if _ERROR.search(line)]
    native = [line for line in lines if _NATIVE_ERROR.search(line)]
    whole = lines[1:] if len(words.encode("utf-8", "replace")) >= KEPT_BYTES and len(lines) > 1 else lines
    plain = [line for line in whole if not _TRACE.search(line)]
    chosen = python[-1:] or native[:1] or plain[-1:]
    return bounded(redacted(_LOG_PREFIX.sub("", chosen[0].strip())), MAX_LINE_BYTES) if chosen else None


def line_of(found: re.Match[str]) -> str:
    """Return the line in which a match stands, fit to be shown."""
    start, end = found.string.rfind("\n", 0, found.start()) + 1, found.string.find("\n", found.end())
    return telling_line(found.string[start : end if end >= 0 else None]) or found[0]


def said(found: re.Match[str]) -> str:
    """Return the engine's words, so that nobody takes them for the value to write."""
    return f"the engine said: {line_of(found)}"


def untold(words: str) -> str:
    """Return in words that an end of a log names no cause, and where else to look where that is known."""
    if not words.strip():
        return "it said nothing"
    first = "its core failed first, and " if _CORE_FAILED.search(words) else ""
    return f"{first}the end of the log that the node keeps does not say why"
