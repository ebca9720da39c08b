"""Schedules: read `schedule.py`, then `calendar`, `messages`, `views`; what they conduct is in `target`."""
