"""A beamline as a file: read, compared with the record, applied by the ordinary commands, and written from the record."""
