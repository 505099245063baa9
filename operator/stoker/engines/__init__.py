"""One file per engine: image, argv, environment, probes, metric names, and what it cannot do.

``interface`` says what an engine is; ``arguments`` knows every spelling of an argument; ``registry`` finds an engine by name.
"""
