"""Schedules: read `schedule.py`, then `calendar`, `schedule_action`, `messages`, `views`."""
