"""Publishing without a network: keys from a directory, artifacts into an outbox, and both in memory."""
