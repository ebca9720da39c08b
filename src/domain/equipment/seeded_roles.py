"""The roles that every service has from its first start."""

from importlib.resources import files

from pydantic import TypeAdapter

from baton.domain.equipment.role import DefineRole

FORM: TypeAdapter[tuple[DefineRole, ...]] = TypeAdapter(tuple[DefineRole, ...])
SEEDED_ROLES = FORM.validate_json(files(__package__).joinpath("seeded_roles.json").read_bytes())
