# `conspectus serve` as an ordinary user; see docs/serve.md.
FROM python:3.13-slim
ARG EXTRAS=serve
COPY . /tmp/conspectus
RUN pip install --no-cache-dir "/tmp/conspectus[$EXTRAS]" \
    && rm -r /tmp/conspectus \
    && useradd --create-home conspectus \
    && install --directory --owner conspectus /home/conspectus/data
USER conspectus
WORKDIR /home/conspectus
EXPOSE 8377
ENTRYPOINT ["conspectus", "serve", "--listen", "0.0.0.0:8377", "--archive", "data/archive.db"]
