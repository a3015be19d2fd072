# Build: glibc and not musl, because the SQL parser recurses and musl's thread stacks are small.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN go build -trimpath -tags netgo,osusergo -ldflags "-s -w -X main.version=${VERSION}" -o /out/dpwatch ./cmd/dpwatch

# Run: no shell, no package manager; a non-root user with a passwd entry comes with the image.
FROM gcr.io/distroless/base-debian12:nonroot
COPY --from=build /out/dpwatch /usr/local/bin/dpwatch
COPY LICENSE /licenses/dpwatch
USER nonroot
EXPOSE 6432 9188
ENTRYPOINT ["/usr/local/bin/dpwatch"]
CMD ["run", "--config", "/etc/dpwatch/dpwatch.yaml"]
