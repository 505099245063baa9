"""``python -m llama_server``: what the image's ``llama-server`` runs."""

import sys

from llama_server import main

sys.exit(main())
