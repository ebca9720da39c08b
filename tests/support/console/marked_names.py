"""Samples whose names are an attack on pages: what shows them as text is right, what shows them as markup is not."""

from typing import Any

from tests.support.service import Api

WORD = "zq7-marked"
MARK = f" {WORD}\"'><b onclick=alert(1)>{{{{7*7}}}}&amp;"


class MarkedApi(Api):
    """A client that marks the name of everything it creates, where such a name is accepted."""

    @classmethod
    def of(cls, api: Api) -> "MarkedApi":
        return cls(api.client, api.base_url, api.database_url, api.headers, api.own_runtime)

    async def create(self, path: str, body: Any) -> str:
        if isinstance(body, dict) and isinstance(body.get("name"), str):
            response = await self.post(path, {**body, "name": body["name"] + MARK})
            if response.status_code == 201:
                return next(value for name, value in response.json().items() if name.endswith("_id"))
        return await super().create(path, body)
