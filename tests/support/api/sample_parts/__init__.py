"""What each context adds to a furnished service."""
