"""A conduct arranged in advance: the command that will open it, with that command's own fields."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import ConfigDict, Discriminator, Tag, create_model

from baton.domain.conduct.conduct import Conduct, ConductOrHoldProcedure, ConductProcedure, ConductUntilConverged
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from baton.domain.kernel import Value

COMMANDS: Mapping[str, type[Conduct]] = {
    command.operation.name: command
    for command in (ConductProcedure, ConductOrHoldProcedure, ConductUntilConverged, ConductUntilAdvised)
}  # The commands that conduct from the beginning, by the names under which they are asked for.
USUAL = ConductProcedure.operation.name
OF_THE_MOMENT = frozenset({"wait", "fingerprint"})


class Arrangement(Value):
    """How a procedure is conducted when its turn comes."""

    model_config = ConfigDict(serialize_by_alias=True)
    command: str

    def stored_form(self) -> dict[str, Any]:
        """Return the arrangement as it is stored, with all defaults filled in."""
        return self.model_dump(mode="json")


def arranged_command(stored: Mapping[str, Any]) -> Conduct:
    """Return the command of a stored arrangement."""
    return COMMANDS[stored["command"]].model_validate({name: own for name, own in stored.items() if name != "command"})


def form_of(name: str, command: type[Conduct]) -> type[Arrangement]:
    """Return the model of a conduct by this command: all its fields but those that are of one moment."""
    kept = {field: info for field, info in command.model_fields.items() if field not in OF_THE_MOMENT}
    own: dict[str, Any] = {field: (info.annotation, info) for field, info in kept.items()}
    own["command"] = (Literal[name], name if name == USUAL else ...)
    return create_model(f"{command.__name__}Arrangement", __base__=Arrangement, __doc__=command.__doc__, **own)


FORMS = {name: form_of(name, command) for name, command in COMMANDS.items()}
DEFAULT_ARRANGEMENT = FORMS[USUAL](command=USUAL)  # All the steps once, from beginning to end.


def _asked_for(given: object) -> object:
    return given.get("command", USUAL) if isinstance(given, dict) else getattr(given, "command", None)


if TYPE_CHECKING:
    ArrangementInput = Arrangement
else:
    ArrangementInput = Annotated[
        Union[tuple(Annotated[form, Tag(name)] for name, form in FORMS.items())],  # noqa: UP007
        Discriminator(_asked_for),
    ]
    """An arrangement as an input: the command says which fields there are."""
