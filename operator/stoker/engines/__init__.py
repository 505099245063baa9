"""One file per engine: image, argv, environment, probes, metric names, and what it cannot do.

``interface`` says what an engine is, ``registry`` finds one by name. ``arguments`` knows who owns an argument, whatever
its spelling. The options of each version are tables in ``stoker.facts``.
"""
