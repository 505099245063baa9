"""What the field knows: how a model is built, what a GPU is, what a quantization costs.

``model`` has the values, ``config`` reads them from a model's own ``config.json``, ``families`` from the table of known
models. ``gpus`` and ``quantization`` are tables. Nothing here knows a cluster or an object of the API.
"""
