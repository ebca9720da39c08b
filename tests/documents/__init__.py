"""The documents say what there is, and what they show was done."""
