# Thin: what is done stands in scripts/ and in the program. `make help` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help install demo test lint docs pictures package vm fleet bench acceptance pages soak fuzz clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand --tabs=20

install: ## what is missing: Debian packages (named first), the Python environment, the engine
	@scripts/setup

demo: install ## a lab of namespaces, RFC 2544 throughput and latency through the kernel, a report (needs root)
	@.venv/bin/nicbench demo

test: ## every check: format, lint, types, import rules, Rust tests, Python tests, real packets, virtual machines (needs root)
	@scripts/setup --test
	@scripts/check lint rust python

lint: ## the checks that run nothing: format, lint, types, import rules
	@scripts/setup --lint
	@scripts/check lint

docs: ## the site of documents in build/site; dead links, anchors and keys without a meaning fail
	@scripts/setup --docs
	@scripts/docs

pictures: ## the screenshots and the recording of the documents, made anew of simulated runs (needs Chromium)
	@scripts/setup --pictures
	@scripts/pictures

package: install ## wheels, .deb, .rpm and image with all that is inside, in build/dist
	@scripts/setup --package
	@scripts/package

vm: ## every test that boots a virtual machine; `make test` runs the short ones too (needs root)
	@scripts/setup --test
	@scripts/check vm

bench: ## nicbench beside its peers, every row of benchmarks/README.md, interleaved (needs root)
	@scripts/setup --bench
	@.venv/bin/python benchmarks/run.py
	@.venv/bin/python benchmarks/streams.py
	@.venv/bin/python benchmarks/live_page.py

fleet: ## forty runs on a cluster of namespaces, dead machines, cut networks, preemption (needs root)
	@scripts/setup --test
	@scripts/check fleet

acceptance: ## the long checks: known rates, repeatability, kills and resumes (needs root)
	@scripts/setup --test
	@scripts/check acceptance

pages: ## reports and the site under axe in headless Chromium and an HTML validator (needs Node, npm, Chromium)
	@scripts/setup --docs
	@scripts/check pages

soak: ## many seeded cases of the checks that `make test` runs a few of
	@scripts/setup --test
	@scripts/check soak

MINUTES ?= 1
fuzz: install ## each fuzzer for MINUTES (1) of time, one after another; what they find is kept (needs cargo-fuzz)
	@scripts/fuzz --minutes $(MINUTES)

clean: ## removes what was built, keeps runs/
	rm -rf .venv engine/target build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
