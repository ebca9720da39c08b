"""Supply: the resources that runs draw on, and whether they are there."""
