"""Subject: the things that are measured."""
