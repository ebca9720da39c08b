"""`baton doctor`: checks everything the service rests on, and says what is wrong and how to mend it."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial


class CheckStatus(StrEnum):
    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True)
class CheckResult:
    """What one check found, in a sentence that says how to mend it."""

    status: CheckStatus
    sentence: str


ok = partial(CheckResult, CheckStatus.OK)
warning = partial(CheckResult, CheckStatus.WARNING)
wrong = partial(CheckResult, CheckStatus.WRONG)
