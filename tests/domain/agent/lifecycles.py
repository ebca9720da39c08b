"""The life of a catalog entry as the specification tabulates it."""

from uuid import UUID

from tests.domain.agent.models import entry
from tests.domain.lives import Life, Scene, Verb, at, because, command
from tests.domain.world import World


def language_model_begins(world: World) -> tuple[UUID, Scene]:
    return world.create(command("define_language_model", entry())), Scene()


LANGUAGE_MODEL = Life(
    "LanguageModel",
    "define_language_model",
    language_model_begins,
    {
        "status": {
            "Defined": "",
            "Approved": "approve_language_model",
            "RetirementAnnounced": "approve_language_model announce_language_model_retirement",
            "Retired": "approve_language_model retire_language_model",
            "Deprecated": "deprecate_language_model",
        }
    },
    {
        "approve_language_model": Verb("Defined", at("Approved"), "LanguageModelCannotApproveError"),
        "announce_language_model_retirement": Verb(
            "Approved", at("RetirementAnnounced"), "LanguageModelCannotAnnounceRetirementError", given=because
        ),
        "retire_language_model": Verb("Approved RetirementAnnounced", at("Retired"), "LanguageModelCannotRetireError"),
        "deprecate_language_model": Verb(
            "Defined Approved RetirementAnnounced", at("Deprecated"), "LanguageModelCannotDeprecateError", given=because
        ),
    },
)

LIVES = (LANGUAGE_MODEL,)
STATELESS = ()
