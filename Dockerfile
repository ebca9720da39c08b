FROM python:3.12-slim AS build
WORKDIR /baton
COPY pyproject.toml setup.py README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
WORKDIR /baton
COPY requirements.server.lock worker.py ./
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --require-hashes -r requirements.server.lock \
 && pip install --no-cache-dir --no-deps /wheels/*.whl \
 && useradd --system baton && install --directory --owner baton --mode 700 /var/tmp/baton-jobs
USER baton
ENTRYPOINT ["baton"]
