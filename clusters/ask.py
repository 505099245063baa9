"""`python -m clusters.ask URL`: post the JSON on standard input and print the answer; run in a cluster's network."""

import sys
import urllib.error
import urllib.request

SECONDS = 120.0
MAX_BYTES = 1 << 20


def main() -> int:
    """Post and print; 1 when there is no good answer."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(sys.argv[1], data=sys.stdin.buffer.read(MAX_BYTES), headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            sys.stdout.buffer.write(answer.read(MAX_BYTES))
    except (urllib.error.URLError, TimeoutError) as error:
        print(f"ask: {sys.argv[1]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
