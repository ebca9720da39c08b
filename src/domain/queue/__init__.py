"""Queues: read `queue.py`, then `items`, `item_records`, `forecast`, `views`; what they conduct is in `target`."""
