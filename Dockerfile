# Both ways to run the service: alone with everything in /data (the default), or as a node of a cluster
# (docker-compose.yml). Runs as a user, with a read-only root.

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# No install script runs here: all native parts bring their binaries as packages of their own.
RUN --mount=type=cache,target=/root/.npm npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund
COPY buf.yaml buf.gen.yaml ./
COPY proto ./proto
COPY src ./src
# The messages and the script of /docs; Node runs all other sources as they are.
RUN npm run prepare

FROM node:24-bookworm-slim
# '' for a base image without apt-get, whose processes then use glibc's malloc.
ARG MALLOC_PACKAGE=libjemalloc2
RUN test -z "$MALLOC_PACKAGE" || \
  { apt-get update && apt-get install -y --no-install-recommends "$MALLOC_PACKAGE" && rm -rf /var/lib/apt/lists/*; }
ENV NODE_ENV=production DATA_DIR=/data MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=65536
ENV LD_PRELOAD=${MALLOC_PACKAGE:+libjemalloc.so.2} MALLOC_CONF=background_thread:true
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
COPY cluster ./cluster
COPY --from=build /app/src/gen ./src/gen
# Volumes take over owner and rights from here when they are first used.
RUN mkdir -m 700 /data /keys && chown node:node /data /keys
USER node
VOLUME /data
EXPOSE 8080 50051
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["node", "-e", \
  "fetch('http://127.0.0.1:' + (process.env.INTERNAL_PORT || process.env.OPS_PORT || 9100) + '/health/ready').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--use-largepages=silent", "--max-semi-space-size=32", "src/main.ts"]
