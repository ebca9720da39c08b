"""Language models: providers asked over HTTP, and rules that answer without one."""
