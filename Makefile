# What everyone does with this tree. `make` lists the targets.

# Every target needs Go; those about the pages also need Node. The services of the tests, luacheck and the rest are
# found or installed by deploy/services.
SERVICES := go run ./deploy/services
MODULES  := web/node_modules/.stamp

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## build bin/sluice
	go build -trimpath -o bin/sluice ./cmd/sluice

.PHONY: demo
demo: ## hold a whole sale on this machine, with a crowd and a page to watch
	go run ./cmd/sluice demo

DATABASE ?= mysql
COMPOSE  := docker compose $(if $(filter postgres,$(DATABASE)),--file docker-compose.yml --file deploy/compose.postgres.yml)

.PHONY: up
up: ## start a whole installation in containers, with DATABASE=postgres on PostgreSQL
	deploy/secrets.sh
	$(COMPOSE) up --detach --build --wait

.PHONY: down
down: ## stop it; the data stays
	$(COMPOSE) down

.PHONY: test
test: ## run all tests on services of their own, which end with them
	$(SERVICES) -- $(MAKE) --keep-going test-go test-web test-pages test-alerts test-deploy
	$(MAKE) test-fuzz
	$(MAKE) test-faults SEEDS=1-3 REPORT=
	$(MAKE) test-brokers LOSS=dies,_and_everybody
	$(MAKE) test-bench

# Tests of a package that run at once, twice as many as the usual two of a small machine: most wait for processes.
TESTS ?= 4

.PHONY: test-go
test-go: ## run the Go tests on the services that SLUICE_TEST_* name
	go test -race -timeout 40m -parallel $(TESTS) ./...

FUZZTIME ?= 5s
FUZZRUNS ?= 2000x
# Where the fuzz targets are; what they are called says go test -list.
FUZZED = $$(grep -rl --include='*_test.go' '^func Fuzz' cmd hub queue server worker | xargs -n1 dirname | sort -u)

.PHONY: fuzz
fuzz: ## look for inputs that break something, for FUZZTIME=5s each kind
	@set -e; for package in $(FUZZED); do \
		for target in $$(go test -list '^Fuzz' ./$$package | grep '^Fuzz'); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$package; \
		done; \
	done

# With neither a build of its own nor a clock, it takes seconds: 2,000 inputs of each kind, which follow from the corpora.
.PHONY: test-fuzz
test-fuzz: ## try FUZZRUNS=2000x inputs of each kind
	@set -e; for package in $(FUZZED); do \
		binary=$(CURDIR)/bin/fuzz/$$package.test; go test -c -o $$binary ./$$package; cd $(CURDIR)/$$package; \
		for target in $$($$binary -test.list '^Fuzz'); do \
			$$binary -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZRUNS) -test.fuzzcachedir $(CURDIR)/bin/fuzz/cache/$$package >$$binary.log 2>&1 || { \
				echo "$$package $$target"; cat $$binary.log; exit 1; }; \
		done; cd $(CURDIR); \
	done

SEEDS  ?= 1-3
REPORT ?= docs/reliability.md

.PHONY: test-faults
test-faults: ## run the schedules of faults SEEDS=1-200 and append what comes of them to docs/reliability.md
	$(SERVICES) --only redis,rabbitmq,mariadb -- go run ./deploy/faults --seeds $(SEEDS) --report "$(REPORT)" --logs bin/faults

LOSS ?= .
.PHONY: test-brokers
test-brokers: ## take away the node of a RabbitMQ cluster that leads the queue, in the middle of a sale, in the ways LOSS (all), and print how long orders stood still
	$(SERVICES) --only redis,mariadb,brokers,gcc -- go test -tags brokers -race -count=1 -v -timeout 20m -run 'TestASaleOutlivesTheNodeThatLeadsItsQueue/$(LOSS)' ./cmd/sluice

SIZE ?= full
ONLY ?=
CROWD ?=

.PHONY: bench
bench: build ## measure everything beside what it is compared with, and write docs/performance.md
	$(SERVICES) --install wrk,redis-benchmark
	cd deploy/bench && go build -o ../../bin/bench/bench .
	$(SERVICES) --only redis,rabbitmq,mariadb,postgres -- bin/bench/bench --size=$(SIZE) $(if $(ONLY),--only=$(ONLY)) $(if $(CROWD),--crowd=$(CROWD))

.PHONY: test-bench
test-bench: ## run every benchmark once at a tiny size
	$(MAKE) bench SIZE=tiny

STAY    ?=
PROVOKE ?=
USERS   ?= 10000

.PHONY: stack
stack: ## the topology of docker-compose.yml as programs of this machine, with a crowd while each part is restarted; STAY=1 only starts it, PROVOKE=1 makes each alert fire
	$(SERVICES) --install nginx,prometheus
	$(SERVICES) --only redis,rabbitmq,mariadb -- go run ./deploy/stack --users $(USERS) $(if $(STAY),--stay) $(if $(PROVOKE),--provoke)

.PHONY: test-alerts
test-alerts: ## let each alert of deploy/prometheus fire, and stay silent on what is close to it
	$(SERVICES) --install promtool
	cd deploy/prometheus && promtool check config --lint=all prometheus.yml && promtool test rules alerts_test.yml

.PHONY: test-deploy
test-deploy: ## check the files for Kubernetes and compose against the definitions of both
	cd deploy/check && go test ./...

.PHONY: test-web
test-web: $(MODULES) ## run the tests of the pages
	cd web && npm test

.PHONY: lint lint-go lint-lua lint-web
lint: lint-go lint-lua lint-web ## check form and style of everything

lint-go:
	@unformatted="$$(gofmt -l $$(find . -name '*.go' -not -path './web/node_modules/*'))"; \
	test -z "$$unformatted" || { echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	go vet -tags brokers ./...
	go tool staticcheck -tags brokers ./...
	go run ./deploy/licences --check
	cd deploy/bench && go vet ./... && go tool staticcheck ./...
	cd deploy/check && go vet ./...

lint-lua:
	$(SERVICES) --install luacheck
	luacheck --quiet --no-color lua/*.lua deploy/wrk/*.lua

lint-web: $(MODULES)
	cd web && npm run lint && npm run check-dist && npm run size

.PHONY: web
web: $(MODULES) ## build the pages into web/dist, which is part of the tree
	cd web && npm run build

.PHONY: test-pages
test-pages: $(MODULES) ## look at every state of the pages in a browser: what axe finds, what does not fit, what looks the same
	$(SERVICES) --install chromium
	cd web && KINDS=en-wide-light,zh-narrow-dark npm run shots

.PHONY: gallery
gallery: $(MODULES) ## take the pictures of docs/pages.md
	@fc-list :lang=zh | grep -q . || { echo "Chinese needs a font, such as that of the package fonts-noto-cjk"; exit 1; }
	$(SERVICES) --install chromium
	cd web && npm run gallery

.PHONY: web-frames
web-frames: $(MODULES) ## record anew, from real servers, what the tests of the pages replay: web/test/frames
	$(SERVICES) --only redis,rabbitmq,mariadb,chromium -- env RECORD=$(CURDIR)/web/test/frames \
		go test -count=1 -run 'InARealBrowser|TestTheRestOfTheProtocol' ./cmd/sluice

.PHONY: licences
licences: ## write docs/dependencies.md: what of others is in here, and under which licence
	go run ./deploy/licences

.PHONY: clean
clean: ## remove what was built
	rm -rf bin web/node_modules

# npm ci starts from nothing, so it runs only when the lock is newer than its last success.
$(MODULES): web/package-lock.json
	$(SERVICES) --install node,npm
	cd web && npm ci
	@touch $@
