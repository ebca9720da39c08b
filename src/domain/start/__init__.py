"""How procedures and runs begin: registered, judged by their gates, started and taken up again."""
