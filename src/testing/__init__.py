"""Test equipment: ports in memory with the promises of the real adapters, for our tests and for those of a site's plugins.
Nothing of the service imports this package."""
