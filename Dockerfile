FROM python:3.12-slim
WORKDIR /baton
COPY requirements.lock pyproject.toml README.md worker.py ./
COPY src src
RUN pip install --no-cache-dir --require-hashes -r requirements.lock \
 && pip install --no-cache-dir --no-deps --no-build-isolation . \
 && useradd --system baton && install --directory --owner baton --mode 700 /var/tmp/baton-jobs
USER baton
ENTRYPOINT ["baton"]
