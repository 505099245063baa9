"""Stoker: a Kubernetes operator for LLM inference.

One ``InferenceService`` says what to serve and how fast; Stoker makes it so. Data flows one way::

    watch -> key -> Snapshot -> plan -> render -> apply -> status

Everything from the Snapshot to the manifests is pure. The packages, from the ground up: ``api`` (the objects),
``facts`` (tables of the field), ``plan`` (the layout over GPUs), ``engines`` (one file per engine), ``agent`` (the
process beside the engine), ``render`` (one file per child), ``status`` (children -> conditions), ``reconcile`` (the
pure middle: Snapshot -> Decision), ``kube`` (input and output), ``controller`` (kopf wiring), ``cli`` (the ``stoker``
command).
"""

__version__ = "0.1.0"
