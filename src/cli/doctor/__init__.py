"""`baton doctor`: looks at everything the service rests on, and says of each what is wrong and how to mend it."""

from baton.cli.doctor.examination import CHECKS, examine

__all__ = ["CHECKS", "examine"]
