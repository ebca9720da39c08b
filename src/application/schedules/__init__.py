"""How schedules fire, and how the engine is kept to their calendars."""
