"""What a number is counted or measured in, said where its type is declared."""

from typing import Any

from pydantic import Field

Seconds: Any = Field(description="In seconds.", json_schema_extra={"unit": {"system": "udunits", "code": "s"}})
Milliseconds: Any = Field(description="In milliseconds.", json_schema_extra={"unit": {"system": "udunits", "code": "ms"}})
Dollars: Any = Field(description="In US dollars.", json_schema_extra={"unit": {"system": "qudt", "code": "CCY_USD"}})
