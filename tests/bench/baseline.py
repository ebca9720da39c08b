"""What we are measured against: a bare FastAPI echo, and a bare FastAPI route that does one INSERT."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import uvicorn
from fastapi import FastAPI, Request
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel

pool = AsyncConnectionPool(
    os.environ["DATABASE_URL"], min_size=16, max_size=16, open=False, kwargs={"autocommit": True, "prepare_threshold": 0}
)


class Thing(BaseModel):
    name: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    await pool.open(wait=True)
    async with pool.connection() as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS bench_things (id uuid PRIMARY KEY, name text NOT NULL)")
    yield
    await pool.close()


app = FastAPI(lifespan=lifespan)


@app.post("/echo")
async def echo(request: Request) -> Any:
    return {"echo": (await request.body()).decode()}


@app.get("/echo")
async def echo_nothing() -> Any:
    return {"status": "ok"}


@app.post("/things", status_code=201)
async def create(thing: Thing) -> Any:
    id = uuid4()
    async with pool.connection() as connection:
        await connection.execute("INSERT INTO bench_things VALUES (%s, %s)", (id, thing.name))
    return {"thing_id": id}


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]), loop="uvloop", http="httptools", log_level="error", access_log=False)
