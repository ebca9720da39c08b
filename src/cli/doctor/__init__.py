"""`baton doctor`: checks everything the service rests on, and says what is wrong and how to mend it."""

from baton.cli.doctor.examination import CHECKS, examine

__all__ = ["CHECKS", "examine"]
