"""Agent: the software agents of the facility, and the language models they may ask."""
