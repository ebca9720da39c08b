"""What the steps of a conduct count in, name, run and come to."""
