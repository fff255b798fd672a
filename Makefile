# The commands of this project; `make help` lists them. Each installs what it needs (Debian packages) if it is missing.
LISTEN ?= 127.0.0.1:11211
PREFIX ?= /usr/local
MINUTES ?= 60
BUILD_PACKAGES = tests/packages/build.txt
BOOTED_PACKAGES = tests/rdma/packages.txt tests/booted/packages.txt
COMPARE_PACKAGES = tools/bench/compare/packages.txt
COMPARE_OPTIONS ?= --quiet 0.3 --one-process
FIGURES = docs/benchmarks/figures
TEST_PACKAGES = $(BUILD_PACKAGES) tests/packages/test.txt $(COMPARE_PACKAGES) $(wildcard tests/rdma/packages.txt)

# What `make deb` and `make install` take: a release, or what conf/packaging/optimised builds.
PRESET = $(if $(filter yes,$(OPTIMISED)),optimised,release)

.PHONY: help run test test-booted test-containers soak compare pools build optimised deb deps format tidy install clean
.DEFAULT_GOAL := help

help:
	@echo 'make run [LISTEN=127.0.0.1:11211]   build, and serve memcached clients until Ctrl-C'
	@echo 'make test                           build and run every test'
	@echo 'make test-booted                    the Debian packages on booted guests: install, reload, upgrade, purge'
	@echo 'make test-containers                the images of docker/, built and run without a daemon'
	@echo 'make soak [MINUTES=60]              all hostile cases at once (p99 of bystanders), the fuzzers, the endurance modes of the tests'
	@echo '     [LIBMEMCACHED_TESTS=PATH]         and the tests of libmemcached that upstream has built, with sockets and preloaded'
	@echo '     [MEMCACHED_TESTS=PATH]            and the tests of memcached, of a directory in which its source was built'
	@echo 'make compare                        measure Egret beside memcached and twemproxy; writes docs/benchmarks/results.md and the six rows of README.md'
	@echo '     [MEMCACHED=PATH TWEMPROXY=PATH]   beside these programs, not the installed ones'
	@echo '     [BASE=COMMIT]                     and beside another commit: is anything worse? writes no file of the tree'
	@echo '     [OPTIMISED=yes]                   of what `make optimised` has built; writes no file of the tree'
	@echo 'make pools                          what a change of members and a dead or hanging one cost clients, beside twemproxy'
	@echo 'make build                          build/release: egret-backend, egret-proxy, egret-memcached, egret-bench, egret-top'
	@echo 'make install [PREFIX=, DESTDIR=]    install what was built, and the files of conf/ and systemd/'
	@echo 'make deb                            Debian packages of it: build/release/packages/*.deb'
	@echo 'make optimised                      build/optimised: the same, compiled by a profile of a training; takes 25 minutes on two CPUs'
	@echo 'make deb|install OPTIMISED=yes      packages of that, which `make deb` builds | install it once it is built'
	@echo 'make format | make tidy             clang-format in place | clang-tidy over everything'
	@echo 'make deps                           only install the packages that building and testing need'

run:
	@exec conf/run.sh "$(LISTEN)"

test: deps
	@exec tests/run-all.sh

test-booted: build
	@tests/packages/install.sh $(BOOTED_PACKAGES)
	@exec /usr/bin/python3 -m pytest -v tests/booted

test-containers:
	@tests/packages/install.sh $(BUILD_PACKAGES) tests/containers/packages.txt
	@exec /usr/bin/python3 tests/containers/images_test.py

soak: deps
	@LIBMEMCACHED_TESTS="$(LIBMEMCACHED_TESTS)" MEMCACHED_TESTS="$(MEMCACHED_TESTS)" exec tests/run-all.sh --soak "$(MINUTES)"

# All of one run, or nothing: the JSON and the tables are written at its end, if every answer was right.
compare: build
	@tests/packages/install.sh $(COMPARE_PACKAGES)
	@MEMCACHED="$(MEMCACHED)" TWEMPROXY="$(TWEMPROXY)" BASE="$(BASE)" OPTIMISED="$(OPTIMISED)" tools/bench/compare/run.sh $(COMPARE_OPTIONS)

pools: build
	@tests/packages/install.sh $(COMPARE_PACKAGES)
	@exec /usr/bin/python3 tools/bench/pools/measure.py build/release --write docs/benchmarks/pools.md

build:
	@tests/packages/install.sh $(BUILD_PACKAGES)
	@cmake --preset release -DEGRET_PRECOMPILE=OFF -DEGRET_UNITE=OFF -DEGRET_UNITS=ON >/dev/null  # which a run of the tests has switched on
	@cmake --build build/release --target shipped

optimised:
	@tests/packages/install.sh $(BUILD_PACKAGES)
	@conf/packaging/optimised/build.sh shipped

deb: $(if $(filter optimised,$(PRESET)),optimised,build)
	@cd build/$(PRESET) && cpack && ls packages/*.deb

deps:
	@tests/packages/install.sh $(TEST_PACKAGES)

format: deps
	@tests/lint/format.py --fix

tidy: deps
	@cmake --preset release -DEGRET_PRECOMPILE=OFF -DEGRET_UNITE=OFF -DEGRET_UNITS=ON >/dev/null  # which a run of the tests has switched on
	@tests/lint/tidy.py build/release

install: $(if $(filter optimised,$(PRESET)),build/optimised/is_complete,build)
	@cmake --install build/$(PRESET) --prefix "$(PREFIX)"

build/optimised/is_complete:
	@echo '`make optimised` builds what is to be installed' >&2; false

clean:
	@rm -rf build
