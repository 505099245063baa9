"""llama.cpp's HTTP server for the CPU, under llama.cpp's own command line, over the PyPI wheel ``xllamacpp``.

The wheel holds llama.cpp's server but no program; this package is that program. It knows the options listed in
``options.py``, spelled as llama.cpp spells them, and refuses every other one: an option that is accepted and then
ignored is worse than a pod that does not start.

What was seen with xllamacpp 2026.10.11549 (llama.cpp b11549) and a 98 MB model, for whoever watches this process:

- One process, 14 threads, no children. A crash of any thread (a segmentation fault, a failed assertion) ends the
  process, exit code 128 + signal. SIGKILL ends it at once; nothing is left behind.
- The one thread that can end alone is the listener: llama.cpp logs "stopped unexpectedly", the port then refuses
  connections and the process would live on. This program looks at its own port every two seconds and exits with 1
  after three refusals in a row.
- While the model loads (2.3 s here, up to 5 s on a busy machine; the warm-up run is more than half of it) the port is
  open and `/health`, `/v1/models`, `/metrics`, `/slots` and `/props` all answer 503 with
  `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`. A connection is refused only before
  that, for the first 0.3 s of the process.
- Loaded: `/health` 200 `{"status":"ok"}`. `/v1/models` lists one entry; its `id` is the alphabetically first alias
  (aliases are a set inside llama.cpp), all of them stand in `aliases`; requests are served whatever name they ask for.
- `/metrics` needs `--metrics`, `/slots` answers 501 after `--no-slots`. During 131 s of one prompt, with batches of
  15 s on a crowded machine, neither `/metrics` nor `/health` ever took 0.2 s: a slow answer is a sign. A stopped
  process (SIGSTOP) still accepts connections and answers nothing.
- More threads than free cores cost dearly, since the threads wait for each other by spinning: on two crowded cores one
  thread generated 40 to 57 tokens a second, two threads 3 to 7. `--threads` should be what the container may use.
- Start-up failures (a missing, damaged or truncated file, a taken port) are logged by llama.cpp and end the process
  with exit code 1; options that are not understood end it with 2 and one line.
- SIGTERM and SIGINT end the process within milliseconds, with exit code 0 when it serves and 15 (2) while it loads.
  Running streams are cut: who wants them finished waits before sending the signal. llama.cpp's own teardown is not
  used, since it was seen to block for 33 s with two streams open.
"""

from llama_server.options import REFUSED_ENVIRONMENT, UsageError, parse
from llama_server.serve import main

__all__ = ["REFUSED_ENVIRONMENT", "UsageError", "main", "parse"]
