"""Who issues persistent identifiers: DataCite, or for development nobody."""
