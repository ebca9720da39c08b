"""How agents act, by rules and by language models, and what wakes them."""
