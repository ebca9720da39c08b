"""The form of what operations answer."""

from pydantic import BaseModel, ConfigDict


class AnswerForm(BaseModel):
    """What an operation answers, or a part of it. As with all data of the domain, what checks and writes it is made when it
    is first needed, so that a command line that asks one thing starts soon."""

    model_config = ConfigDict(defer_build=True)
