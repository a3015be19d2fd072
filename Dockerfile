# deploy/image/build.sh builds the image and verifies it. Another compiler: --build-arg GO_IMAGE=NAME:TAG@sha256:...
ARG GO_IMAGE=docker.io/library/golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d

# Build: linked statically against glibc, not musl: the SQL parser recurses and musl's thread stacks are small.
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN go build -buildvcs=false -trimpath -tags netgo,osusergo \
      -ldflags "-s -w -linkmode external -extldflags -static -X main.version=${VERSION}" -o /out/dpwatch ./cmd/dpwatch \
 && sh deploy/image/rootfs.sh /out/dpwatch /out/rootfs

# Run: only what rootfs.sh has put there.
FROM scratch
ARG VERSION=devel
LABEL org.opencontainers.image.title="dpwatch" \
      org.opencontainers.image.description="Continuous auditing of differential privacy in production" \
      org.opencontainers.image.source="https://github.com/dpwatch/dpwatch" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /out/rootfs/ /
USER 65532:65532
EXPOSE 6432 9188 9189
# Needs an admin listener in the configuration; docker run --no-healthcheck without one.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["/usr/local/bin/dpwatch", "status", "--alive", "--config", "/etc/dpwatch/dpwatch.yaml"]
ENTRYPOINT ["/usr/local/bin/dpwatch"]
CMD ["run", "--config", "/etc/dpwatch/dpwatch.yaml"]
