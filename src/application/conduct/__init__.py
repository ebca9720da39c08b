"""How conducts are carried out, step by step and pass by pass, and the ports of what steps do."""
