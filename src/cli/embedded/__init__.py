"""PostgreSQL and Temporal as children of this process: started with it, stopped with it, never left behind."""
