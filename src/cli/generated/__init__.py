"""The content of the files that are made from the declarations of the service."""
