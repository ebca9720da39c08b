"""The form of what operations answer."""

from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict


class AnswerForm(BaseModel):
    """What an operation answers, or a part of it. As with all data of the domain, what checks and writes it is made when it
    is first needed, so that a command line that asks one thing starts soon."""

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def of_row(cls, names: Sequence[str], row: Sequence[object]) -> Self:
        """Return a row of a list whose values are known to fit, unchecked. Lists are long: this is `model_construct` without
        its look at every field of every row."""
        made, put = cls.__new__(cls), object.__setattr__
        put(made, "__dict__", dict(zip(names, row, strict=True)))
        put(made, "__pydantic_fields_set__", set(names))
        put(made, "__pydantic_extra__", None)
        put(made, "__pydantic_private__", None)
        return made
