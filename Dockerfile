# One static binary, without a shell around it. The pages are part of the tree (web/dist), so Go alone builds it.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/sluice ./cmd/sluice \
    && mkdir /out/data

# busybox brings the wget of health checks.
FROM busybox:1.37-musl AS busybox

# Root certificates, time zones and an account that owns nothing (65532).
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=busybox /bin/busybox /bin/wget
COPY --from=build /out/sluice /usr/local/bin/sluice
COPY --from=build --chown=65532:65532 /out/data /data
ENV SLUICE_DATA_DIR=/data
WORKDIR /
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["/usr/local/bin/sluice"]
CMD ["serve"]
