"""A small request, and sleeps that are only noted."""

from typing import Any

from baton.application.language_models import ChatRequest, Purpose
from baton.domain.agent.language_model import ModelRef

MODEL = ModelRef(provider="acme", model="m-1")
SCHEMA = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": ["go", "stay"]},
        "sure": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["verdict", "sure"],
    "additionalProperties": False,
}
SOUND = {"verdict": "go", "sure": 0.5}


def chat_request(**changes: Any) -> ChatRequest:
    given = {"purpose": Purpose.RUN_DEBRIEF, "system": "Say go or stay.", "user_message": '{"wind": "fair"}'}
    return ChatRequest(**{**given, "structured_output_schema": SCHEMA, "model_ref": MODEL, **changes})


class RecordedSleep:
    """Sleeps no time at all, and says for how long it would have."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
