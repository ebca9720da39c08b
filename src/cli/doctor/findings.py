"""What a check of `baton doctor` comes to."""

from dataclasses import dataclass
from enum import StrEnum

START_WORKER = "start `baton worker`, or `baton up`"
"""How most of what a worker does is mended when nobody does it."""


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """What one check found, in a sentence that says how to mend it."""

    verdict: Verdict
    sentence: str


def ok(sentence: str) -> Finding:
    return Finding(Verdict.OK, sentence)


def warning(sentence: str) -> Finding:
    return Finding(Verdict.WARNING, sentence)


def wrong(sentence: str) -> Finding:
    return Finding(Verdict.WRONG, sentence)
