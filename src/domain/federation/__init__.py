"""Federation: what facilities trust each other with, how they prove it, and what is published and received."""
