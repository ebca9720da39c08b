"""Tables: spreadsheets that somebody uploads are read by a confined process."""
