"""Access: who a principal is. It grants nothing; what a principal may do is decided in trust."""
