"""The witness of Bluesky: documents, journal, sender, and a RunEngine that records its runs."""
