"""The workflows of this build; every module of this package is imported when a worker asks for them."""
