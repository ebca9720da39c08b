"""Data: what was measured and computed, where its bytes are, who checked them, and what was published of it."""
