"""Equipment: the instruments of the facility, their classes and makes, where they are mounted, what is built of them."""
