"""The bench: workloads with what they must show, on every arm that can serve them, over several seeds.

Start with `workloads.py`; docs/design/0036-the-bench.md says why it measures what it measures.
"""
