# The commands of the project. Everything else is CMake's: see CMakePresets.json.
#   make run [LISTEN=127.0.0.1:11211]   install what is missing, build, serve in the foreground until Ctrl-C
#   make test                           install what is missing, build, run every test
LISTEN ?= 127.0.0.1:11211
PREFIX ?= /usr/local

.PHONY: run test soak build deps test-deps install format tidy clean

run: deps
	@[ -e build/release/build.ninja ] || cmake --preset release >/dev/null
	@cmake --build build/release --target egret-backend egret-proxy egret-bench
	@exec conf/run.sh build/release "$(LISTEN)"

test: test-deps
	@exec tests/run_all.sh

soak: test-deps
	@exec tests/run_all.sh --soak

build: deps
	@[ -e build/release/build.ninja ] || cmake --preset release
	@cmake --build build/release

deps:
	@tests/packages/install.sh tests/packages/build.txt

test-deps: deps
	@tests/packages/install.sh tests/packages/test.txt tests/rdma/packages.txt

install: build
	cmake --install build/release --prefix "$(PREFIX)"

format:
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

tidy: build
	@tests/lint/tidy.sh build/release

clean:
	rm -rf build
