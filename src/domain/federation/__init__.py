"""Federation: which facilities there are, what they trust each other with, and how they prove it."""
