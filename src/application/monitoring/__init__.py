"""How the record follows what the signals of the plant say of supplies and enclosures."""
