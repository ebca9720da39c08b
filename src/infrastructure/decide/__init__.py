"""Deciders: who says where a steered conduct measures next."""


class StatelessDecider:
    """A decider that holds nothing to be closed."""

    async def close(self) -> None:
        return
