"""The moments of a conduct at which something can be asked of it: before, during and after each piece of its work."""

from typing import NamedTuple


class ConductMoment(NamedTuple):
    """One moment of one conduct; `what` is the piece of work, as the engine names it.

    The work of a step has its pass, its list and its index. Of what stands between steps, `iteration_index` is the pass that
    it ends, or how many passes the conduct had begun.
    """

    when: str
    what: str
    iteration_index: int = 0
    closing: bool = False
    step_index: int | None = None

    def __str__(self) -> str:
        place = "" if self.step_index is None else f" {'closing ' if self.closing else ''}{self.step_index}"
        return f"{self.when} {self.what}{place}{f' of pass {self.iteration_index}' if self.iteration_index else ''}"
