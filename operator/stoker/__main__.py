"""``python -m stoker``: the ``stoker`` command, from a source tree."""

from stoker.cli import main

main()
