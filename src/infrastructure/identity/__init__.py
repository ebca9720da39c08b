"""Identity providers: who a bearer token stands for."""
