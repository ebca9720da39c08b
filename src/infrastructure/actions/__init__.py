"""The actions that come with the service, and how a site adds its own."""
