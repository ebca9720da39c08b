"""Safety: the forms that must be in force before an experiment starts, and a site's catalog of them."""
