"""What is wrong with a field is said in words, and never quotes what was sent."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from baton.domain.shared.field_faults import fault_text
from tests.support.tables import for_each

Colour = StrEnum("Colour", ["red", "green", "blue", "yellow", "orange", "purple", "brown", "black", "white"])


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reason: Annotated[str, Field(min_length=1, max_length=5)] = "x"
    asset_id: UUID | None = None
    supply_ids: tuple[UUID, ...] = ()
    dwell: Annotated[float, Field(gt=0, le=10)] = 1
    tier: Literal["Unit", "Device"] = "Unit"
    colour: Colour = Colour.red
    at: AwareDatetime | datetime | None = None


class Needing(BaseModel):
    override_parameters: dict[str, Any]
    asset_id: UUID


@for_each(
    ("fields", "said"),
    [
        ({"reason": ""}, "A reason is needed"),
        ({"reason": "secret"}, "It has more than 5 characters"),
        ({"reason": 7}, "A text is expected"),
        ({"asset_id": "secret"}, "An id is expected"),
        ({"supply_ids": "secret"}, "A list is expected"),
        ({"dwell": "secret"}, "A number is expected"),
        ({"dwell": 0}, "It must be more than 0.0"),
        ({"dwell": 11}, "It must be at most 10.0"),
        ({"tier": "Unti"}, "It must be Unit or Device; did you mean Unit"),
        ({"colour": "secret"}, "It is none of the 9 choices"),
        ({"colour": "purpel"}, "It is none of the 9 choices; did you mean purple"),
        ({"secret": 1}, "There is no such field"),
    ],
)
def test_a_fault_is_a_sentence(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Order.model_validate(fields)
    assert fault_text(refused.value.errors()[0]) == said


def test_what_is_missing_is_named_in_words() -> None:
    with pytest.raises(ValidationError) as refused:
        Needing.model_validate({})
    assert [fault_text(one) for one in refused.value.errors()] == ["Override parameters are needed", "An asset is needed"]
