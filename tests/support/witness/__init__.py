"""What tests of the witness share."""
