"""What every field of an input or an answer means, one module for each group of contexts."""
