# One target a step; continuous integration runs `make test` and nothing else.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

CARGO ?= cargo
# Nextest where it is installed, else cargo's own runner.
NEXTEST := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo yes)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

.PHONY: run
run: ## Start the hub; nothing needs to be configured
	@$(CARGO) run --package bellwire -- serve

.PHONY: play
play: ## Play a timeline: an agent hears what happens while it works
	@$(CARGO) run --quiet --package bellwire -- simulate examples/demo.timeline

.PHONY: test
test: lint test-rust test-docs test-examples test-api test-mcp test-telegram test-agents-once test-web ## Everything: lint, tests, doc examples, examples, the API fuzzed, MCP's own clients, a foreign Telegram stand-in, real agents, a browser

.PHONY: test-rust
test-rust:
ifeq ($(NEXTEST),yes)
	$(CARGO) nextest run --workspace --all-targets
else
	$(CARGO) test --workspace --all-targets
endif

.PHONY: test-docs
test-docs:
	$(CARGO) test --workspace --doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

.PHONY: test-examples
test-examples:
	scripts/test-examples

.PHONY: test-api
test-api: ## Fuzz the API by its own description (EXAMPLES=1000 for longer)
	scripts/schemathesis

.PHONY: test-mcp
test-mcp: ## The official MCP conformance suite and clients against the hub
	scripts/test-mcp

.PHONY: test-telegram
test-telegram: ## The hub against telegram-test-api, an independent stand-in for Telegram
	scripts/test-telegram

.PHONY: test-agents-once
test-agents-once: ## Each real agent once; 1.7 GB on disk
	scripts/test-agents --once

.PHONY: test-agents
test-agents: ## Real agents (Claude Code, Codex, Gemini CLI, OpenCode) against a scripted model; 1.7 GB on disk
	scripts/test-agents

.PHONY: test-web
test-web: ## The web package, and the elements and pages in a real browser
	scripts/test-web

.PHONY: web
web: ## Build web/dist, which is committed, so that cargo needs no Node
	scripts/web build

.PHONY: openapi
openapi: ## Write docs/openapi.json and the tables of docs/tokens.md and docs/events.md anew
	BELLWIRE_UPDATE_OPENAPI=1 $(CARGO) test --quiet --package bellwire-server --test it -- openapi::the_description docs::the_table

.PHONY: lint
lint: ## Formatting and clippy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

.PHONY: fmt
fmt: ## Format everything
	$(CARGO) fmt --all

.PHONY: bench
bench: ## Measure; run it on a quiet machine (ONLY="hub streams" for some sections)
	@# 10 000 streams take as many files, in the hub and in the benchmark.
	@# `hook` runs the program itself, and one that only connects.
	$(CARGO) build --quiet --release --package bellwire --package bellwire-bench
	ulimit -n 16000 2>/dev/null || true; $(CARGO) run --quiet --release --package bellwire-bench -- $(ONLY)

.PHONY: chaos
chaos: ## Kill the hub under load, again and again (KILLS=1000 SEED=n)
	KILLS=$(or $(KILLS),1000) SEED=$(or $(SEED),$$RANDOM) \
		$(CARGO) test --package bellwire --test chaos -- --nocapture nothing_is_lost

.PHONY: fuzz
fuzz: ## Long property runs and fuzz targets (SECONDS_EACH=60)
	scripts/fuzz

.PHONY: screenshots
screenshots: ## Pictures of the elements and of each page of the console, into target/screenshots
	scripts/in-browser node screenshots.mjs
	scripts/in-browser node console-screenshots.mjs
