# Build: linked statically against glibc, not musl: the SQL parser recurses and musl's thread stacks are small.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN go build -trimpath -tags netgo,osusergo \
      -ldflags "-s -w -linkmode external -extldflags -static -X main.version=${VERSION}" -o /out/dpwatch ./cmd/dpwatch \
 && printf 'dpwatch:x:65532:65532:dpwatch:/:/sbin/nologin\n' > /out/passwd \
 && printf 'dpwatch:x:65532:\n' > /out/group && mkdir -m 1777 /out/tmp

# Run: the program, certificates of the public authorities, a non-root user with a passwd entry; no shell.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/passwd /out/group /etc/
COPY --from=build /out/tmp /tmp
COPY --from=build /out/dpwatch /usr/local/bin/dpwatch
COPY LICENSE /licenses/dpwatch
USER 65532:65532
EXPOSE 6432 9188
# Needs an admin listener in the configuration; docker run --no-healthcheck without one.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/usr/local/bin/dpwatch", "health", "--config", "/etc/dpwatch/dpwatch.yaml"]
ENTRYPOINT ["/usr/local/bin/dpwatch"]
CMD ["run", "--config", "/etc/dpwatch/dpwatch.yaml"]
