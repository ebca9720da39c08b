"""What is seen and held across contexts; nothing in the domain stands above it."""
