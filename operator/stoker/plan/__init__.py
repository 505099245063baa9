"""Pure arithmetic: how a model lies over GPUs, whether it fits, and how a revision replaces the one before it.

``types`` has the values that everything downstream reads, above all :class:`~stoker.plan.types.Layout`: the one
place from which GPU counts, resource names and memory figures come. ``snapshot`` has what was observed in the cluster.
"""
